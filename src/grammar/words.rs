//! How values, shell lines and files are split into words.

/// The pieces of a list of nvcc, as written: parted by commas outside of double quotes; a backslash takes the next
/// character as it is. Empty pieces vanish, and blanks around a piece.
///
/// Measured: `-D A,,B` and `-D "A , B"` define two; `-DA="x,y"` one, with its quotes; `-DA=f\,g` one; `-DA='x,y'` two.
pub(super) fn list(text: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut quoted, mut escaped) = (false, false);
    for c in text.chars() {
        if c == ',' && !quoted && !escaped {
            pieces.push(std::mem::take(&mut piece));
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        piece.push(c);
    }
    pieces.push(piece);
    pieces.iter().map(|piece| piece.trim_ascii().to_owned()).filter(|piece| !piece.is_empty()).collect()
}

/// Whether each double quote of `text` has its partner: nvcc ends with "Stray" otherwise.
pub(super) fn is_closed(text: &str) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    for c in text.chars() {
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    !quoted
}

/// `piece` without its escaping backslashes, if the list was one of nvcc.
pub(super) fn unescape(piece: &str, nvcc: bool) -> String {
    let mut escaped = false;
    let keeps = |c: &char| {
        escaped = *c == '\\' && !escaped;
        !escaped
    };
    if nvcc { piece.chars().filter(keeps).collect() } else { piece.to_owned() }
}

/// The host compiler's words in one value of `-Xcompiler`; none if they cannot be told.
///
/// Measured: nvcc splits the list, takes the backslashes away, and pastes the pieces into a line of its shell as they are,
/// quotes and blanks included: `"-DX=a,b"` is one word, `-DX=\"a,b\"` becomes the line `-DX="a b"`.
pub(super) fn host(value: &str) -> Option<Vec<String>> {
    if !is_closed(value) {
        return None;
    }
    let line: Vec<_> = list(value).iter().map(|piece| unescape(piece, true)).collect();
    let line = line.join(" ");
    quoted(&line, Backslash::Kept)
}

/// What a backslash does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Backslash {
    /// Nothing.
    Kept,
    /// It takes the next character as it is, within quotes too.
    Escapes,
}

/// The words of `line`: parted by blanks outside of single and double quotes, which are taken away. None if a quote has no
/// end.
pub(super) fn quoted(line: &str, backslash: Backslash) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match quote {
            _ if c == '\\' && backslash == Backslash::Escapes => {
                word.get_or_insert_default().extend(rest.next());
            }
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            None if c.is_ascii_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
