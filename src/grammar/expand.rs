//! Response and options files, replaced by the words that they hold.

use super::{Refusal, RefusalKind, Token, parse, words};

/// Files within files end here.
const MAX_DEPTH: usize = 16;

/// All words together end here, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// `argv` with each response file (`@file`) and options file (`--options-file F`, `-optf F`, `-optf=F`) replaced by its
/// words, files within files too; `read` gives a file's bytes.
///
/// A response file is read by gcc's rules: blanks part words, either quote groups, a backslash takes the next character.
/// In an options file nvcc knows double quotes alone, and measured with 13.0.88 it takes quotes and backslashes away more
/// than once (`-DA=\"z\"` defines `z`): a file with backslashes or single quotes is refused rather than guessed at.
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

/// Whether the last word waits for a value that would have to stand behind the file.
fn ends_open(program: &str, words: &[String]) -> bool {
    let argv: Vec<_> =
        std::iter::once(program).chain(words.iter().map(String::as_str)).map(str::to_owned).collect();
    matches!(parse(&argv).tokens.last(), Some(Token::Unknown(_)))
}

fn extend(
    program: &str,
    words: &[String],
    walk: &mut Walk<'_>,
    out: &mut Vec<String>,
) -> Result<(), Refusal> {
    let argv: Vec<_> = std::iter::once(program.to_owned()).chain(words.iter().cloned()).collect();
    for token in &parse(&argv).tokens[1..] {
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
            if backslash == words::Backslash::Kept && text.contains(['\\', '\'']) {
                return Err(unparsable());
            }
            let found = words::quoted(&text, backslash).ok_or_else(unparsable)?;
            if ends_open(program, &found) {
                return Err(unparsable());
            }
            walk.depth += 1;
            extend(program, &found, walk, out)?;
            walk.depth -= 1;
        }
    }
    Ok(())
}
