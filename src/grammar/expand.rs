//! Response and options files, replaced by the words that they hold.

use super::{Refusal, RefusalKind, Token, options, parse, words};

/// Files within files end here.
const MAX_DEPTH: usize = 16;

/// All words together end here, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// `argv` with each response file (`@file`) and options file (`--options-file F`, `-optf F`, `-optf=F`) replaced by its
/// words, files within files too; `read` gives a file's bytes.
///
/// A response file is read by gcc's rules: blanks part words, either quote groups, a backslash takes the next character.
/// In an options file nvcc knows double quotes alone, and measured with 13.0.88 it takes quotes and backslashes away more
/// than once (`-DA=\"z\"` defines `z`): a file with backslashes or single quotes is refused rather than guessed at. It takes
/// files within files, and reads a `#` as a word. nvcc itself knows no `@file`: a command with one fails as it stands, and
/// is what its expansion says only where that is what runs.
///
/// # Errors
/// The refusal that names the word: a file that cannot be read or split, or too many of them. A response file on
/// `-Xcompiler` stays, for [`super::Command::refusals`] to name.
pub fn expand(
    argv: &[String],
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Vec<String>, Refusal> {
    let mut expanded = Vec::new();
    let mut left = MAX_BYTES;
    let Some((program, words)) = argv.split_first() else { return Ok(expanded) };
    expanded.push(program.clone());
    extend(program, words, &mut Walk { read, left: &mut left, depth: 0 }, &mut expanded)?;
    Ok(expanded)
}

struct Walk<'a> {
    read: &'a mut dyn FnMut(&str) -> Option<Vec<u8>>,
    left: &'a mut usize,
    depth: usize,
}

fn extend(
    program: &str,
    words: &[String],
    walk: &mut Walk<'_>,
    out: &mut Vec<String>,
) -> Result<(), Refusal> {
    let argv: Vec<_> = std::iter::once(program.to_owned()).chain(words.iter().cloned()).collect();
    let command = parse(&argv);
    // A value that would stand behind the file: nvcc ends with "argument expected".
    if let Some(Token::Unknown(word)) = command.tokens.last()
        && walk.depth > 0
        && (!command.nvcc() || options::awaits(word))
    {
        return Err(Refusal { kind: RefusalKind::Unparsable, token: word.clone() });
    }
    for token in &command.tokens[1..] {
        let files = match token {
            Token::Input(word) if word.starts_with('@') => {
                vec![(word[1..].to_owned(), words::Backslash::Escapes)]
            }
            Token::OptionsFile(option) => {
                words::list(&option.value).into_iter().map(|file| (file, words::Backslash::Kept)).collect()
            }
            _ => {
                out.extend(token.print());
                continue;
            }
        };
        for (file, backslash) in files {
            let refuse = |kind| Refusal { kind, token: token.print().join(" ") };
            let bytes = (walk.read)(&file).ok_or_else(|| refuse(RefusalKind::ResponseFile))?;
            *walk.left =
                walk.left.checked_sub(bytes.len() + 1).ok_or_else(|| refuse(RefusalKind::ResponseFile))?;
            if walk.depth >= MAX_DEPTH {
                return Err(refuse(RefusalKind::ResponseFile));
            }
            let unparsable = || refuse(RefusalKind::Unparsable);
            let text = String::from_utf8(bytes).map_err(|_| unparsable())?;
            let odd = |c: char| c.is_control() && !"\t\r\n".contains(c);
            if text.contains(odd) || (backslash == words::Backslash::Kept && text.contains(['\\', '\''])) {
                return Err(unparsable());
            }
            let found = words::quoted(&text, backslash).ok_or_else(unparsable)?;
            walk.depth += 1;
            extend(program, &found, walk, out)?;
            walk.depth -= 1;
        }
    }
    Ok(())
}
