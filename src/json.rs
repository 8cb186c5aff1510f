//! Receipt JSON: one text for one value. Sorted unique ASCII keys, integers only, nothing empty, two-space indent, one
//! trailing line feed; whatever is read must be exactly what would be written.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Failure, Outcome};

/// Largest size of a receipt.
pub const LONGEST_BYTES: usize = 32 << 20;
/// Deepest nesting of arrays and objects.
pub const DEEPEST: usize = 32;
/// Most values in one receipt, containers included.
pub const MOST_NODES: usize = 1_000_000;
/// Largest magnitude of an integer, 2^53 - 1: exact for every reader.
pub const LARGEST_INTEGER: u64 = (1 << 53) - 1;

/// Why bytes are not receipt JSON or not the record that they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Stable code.
    pub code: &'static str,
    /// JSON pointer (RFC 6901) of the value at fault; empty for the whole document.
    pub pointer: String,
    /// What was needed.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

impl Fault {
    fn new(
        code: &'static str,
        pointer: String,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { code, pointer, expected: expected.into(), found: found.into() }
    }

    /// The refusal of the file `name` because of this fault (exit 1).
    #[must_use]
    pub fn refuse(self, name: &str) -> Box<Failure> {
        let place = if self.pointer.is_empty() { String::new() } else { format!(" at {}", self.pointer) };
        Failure::refused(self.code, format!("{name} is not a well-formed receipt{place}"))
            .expected(self.expected)
            .found(self.found)
            .hint("take the receipt again from the one who published it; no tool may rewrite it")
    }
}

/// Reads any receipt JSON.
///
/// # Errors
/// `E-JSON-*`, with the pointer of the first fault.
pub fn read(bytes: &[u8]) -> Result<Value, Fault> {
    let whole = |code, expected: &str, found: String| Fault::new(code, String::new(), expected, found);
    if bytes.len() > LONGEST_BYTES {
        let expected = format!("at most {LONGEST_BYTES} bytes");
        return Err(whole("E-JSON-LIMIT", &expected, format!("{} bytes", bytes.len())));
    }
    if bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        return Err(whole("E-JSON-ENCODING", "UTF-8 without a byte order mark", "a byte order mark".into()));
    }
    if bytes.contains(&b'\r') {
        return Err(whole("E-JSON-ENCODING", "line feeds alone", "a carriage return".into()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        whole("E-JSON-ENCODING", "UTF-8", format!("other bytes at offset {}", error.valid_up_to()))
    })?;
    let walk = Walk::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict(&walk).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    let value = value.map_err(|error| {
        let fault = walk.0.borrow_mut().fault.take();
        fault.unwrap_or_else(|| syntax(&walk.0.borrow(), &error))
    })?;
    if let Some(at) = first_difference(text, &text_of(&value)) {
        let found = format!("other bytes from offset {at}");
        return Err(whole("E-JSON-NOTCANONICAL", "the one canonical text of this value", found));
    }
    Ok(value)
}

/// Reads a record of type `T`: receipt JSON that says all that the record says, and nothing else.
///
/// # Errors
/// `E-JSON-*` as in [`read`]; `E-SCHEMA-UNKNOWN`, `E-SCHEMA-DIGEST`, `E-DIGEST-ALG`, `E-PRIV-*`, `E-PATH`, `E-TIME` or
/// `E-SCHEMA`.
pub fn read_record<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<T, Fault> {
    record_of(&read(bytes)?)
}

/// The record of type `T` that `value` holds.
///
/// # Errors
/// As [`read_record`], without `E-JSON-*` but `E-JSON-NOTCANONICAL`.
pub fn record_of<T: DeserializeOwned + Serialize>(value: &Value) -> Result<T, Fault> {
    let record: T = serde_path_to_error::deserialize(value).map_err(|error| mistyped(value, &error))?;
    if serde_json::to_value(&record).ok().as_ref() == Some(value) {
        return Ok(record);
    }
    let expected = "each field in the one form in which it is written";
    Err(Fault::new("E-JSON-NOTCANONICAL", String::new(), expected, "a field that would be left out"))
}

/// The canonical text of `record`, refused if a reader would refuse it.
///
/// # Errors
/// The reader's fault; the writer's mistake, so exit 3.
pub fn write(record: &impl Serialize) -> Outcome<Vec<u8>> {
    let mistake = |code, what: String| Failure::could_not_judge(code, what);
    let value = serde_json::to_value(record)
        .map_err(|error| mistake("E-SCHEMA", "a record has no JSON form".to_owned()).found(error))?;
    let bytes = text_of(&value).into_bytes();
    match read(&bytes) {
        Ok(_) => Ok(bytes),
        Err(fault) => {
            Err(mistake(fault.code, format!("a record would not be readable at {}", fault.pointer))
                .expected(fault.expected)
                .found(fault.found))
        }
    }
}

/// The word that stands for `value` in a receipt, such as `REBUILD_IS_BIT_IDENTICAL`.
pub(crate) fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn text_of(value: &Value) -> String {
    // `Value` keeps its keys sorted by bytes, and the alternate form is the two-space one.
    format!("{value:#}\n")
}

fn first_difference(a: &str, b: &str) -> Option<usize> {
    if a == b {
        return None;
    }
    let equal = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    Some(equal)
}

fn syntax(state: &State, error: &serde_json::Error) -> Fault {
    let message = error.to_string();
    let (code, expected) = if message.contains("hex escape") {
        ("E-JSON-ENCODING", "whole characters, no lone surrogate")
    } else if message.contains("number out of range") {
        ("E-JSON-NUMBER", "an integer")
    } else {
        ("E-JSON-SYNTAX", "JSON (RFC 8259)")
    };
    Fault::new(code, state.pointer(), expected, message)
}

/// One step of a JSON pointer.
enum Step {
    Key(String),
    Index(usize),
}

#[derive(Default)]
struct State {
    path: Vec<Step>,
    nodes: usize,
    fault: Option<Fault>,
}

impl State {
    fn pointer(&self) -> String {
        use fmt::Write as _;
        self.path.iter().fold(String::new(), |mut pointer, step| {
            // Writing to a string cannot fail.
            let _ = match step {
                Step::Key(key) => write!(pointer, "/{}", escaped(key)),
                Step::Index(index) => write!(pointer, "/{index}"),
            };
            pointer
        })
    }
}

/// `key` as a reference token of a JSON pointer (RFC 6901, section 3).
#[must_use]
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Where the strict reader is, and what it found.
#[derive(Default)]
struct Walk(RefCell<State>);

impl Walk {
    fn fail<E: serde::de::Error>(
        &self,
        code: &'static str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> E {
        let mut state = self.0.borrow_mut();
        let fault = Fault::new(code, state.pointer(), expected, found);
        state.fault.get_or_insert(fault);
        E::custom(code)
    }

    fn node<E: serde::de::Error>(&self) -> Result<(), E> {
        let nodes = {
            let mut state = self.0.borrow_mut();
            state.nodes += 1;
            state.nodes
        };
        if nodes > MOST_NODES {
            return Err(self.fail("E-JSON-LIMIT", format!("at most {MOST_NODES} values"), "more"));
        }
        Ok(())
    }

    fn enter<E: serde::de::Error>(&self, step: Step) -> Result<(), E> {
        let depth = {
            let mut state = self.0.borrow_mut();
            state.path.push(step);
            state.path.len()
        };
        if depth > DEEPEST {
            return Err(self.fail("E-JSON-LIMIT", format!("nesting of at most {DEEPEST}"), "deeper nesting"));
        }
        Ok(())
    }

    fn leave(&self) {
        self.0.borrow_mut().path.pop();
    }
}

/// Builds a value and refuses what receipt JSON does not have.
#[derive(Clone, Copy)]
struct Strict<'a>(&'a Walk);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("receipt JSON")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.0.node()?;
        Ok(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.0.node()?;
        if value > LARGEST_INTEGER {
            return Err(self.0.fail(
                "E-JSON-NUMBER",
                format!("at most {LARGEST_INTEGER}"),
                value.to_string(),
            ));
        }
        Ok(value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.0.node()?;
        if value.unsigned_abs() > LARGEST_INTEGER {
            return Err(self.0.fail(
                "E-JSON-NUMBER",
                format!("at least -{LARGEST_INTEGER}"),
                value.to_string(),
            ));
        }
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let found = format!("{value:?}, or a form of it");
        Err(self.0.fail("E-JSON-NUMBER", "an integer without fraction, exponent or negative zero", found))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        Err(self.0.fail("E-JSON-NULL", "a value, or no field", "null"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.0.node()?;
        if value.is_empty() {
            return Err(self.0.fail("E-JSON-EMPTY", "text, or no field", "an empty string"));
        }
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.0.node()?;
        let mut values = Vec::new();
        loop {
            self.0.enter(Step::Index(values.len()))?;
            match items.next_element_seed(self)? {
                Some(value) => values.push(value),
                None => break,
            }
            self.0.leave();
        }
        self.0.leave();
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.0.node()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.0.enter(Step::Key(key.clone()))?;
            if key.is_empty() {
                return Err(self.0.fail("E-JSON-EMPTY", "a named key", "an empty key"));
            }
            if !key.is_ascii() {
                return Err(self.0.fail("E-JSON-ENCODING", "an ASCII key", key));
            }
            if map.contains_key(&key) {
                return Err(self.0.fail("E-JSON-DUPKEY", "each key once", format!("{key} again")));
            }
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
            self.0.leave();
        }
        Ok(map.into())
    }
}

/// Codes that a checked text type puts before its refusal.
const TEXT_CODES: [&str; 4] = ["E-PATH", "E-PRIV-STRING", "E-PRIV-IDENT", "E-TIME"];

fn mistyped(value: &Value, error: &serde_path_to_error::Error<serde_json::Error>) -> Fault {
    use serde_path_to_error::Segment;
    let pointer: String = error
        .path()
        .iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", escaped(key)),
            Segment::Enum { variant } => format!("/{}", escaped(variant)),
            Segment::Unknown => String::new(),
        })
        .collect();
    let message = error.inner().to_string();
    let in_digest_set = pointer.ends_with("/digest") || pointer.contains("/digest/");
    let about_a_field = message.starts_with("unknown field") || message.starts_with("missing field");
    let code = if in_digest_set && about_a_field {
        "E-DIGEST-ALG"
    } else if message.starts_with("unknown field") {
        match value.pointer(&pointer) {
            Some(extra) if holds_integers(extra) => "E-PRIV-ARRAY",
            _ => "E-SCHEMA-UNKNOWN",
        }
    } else if message.contains("is not a SHA-256") {
        "E-SCHEMA-DIGEST"
    } else if message.starts_with("unknown variant") && value.pointer(&pointer).is_some_and(is_free_text) {
        "E-PRIV-STRING"
    } else {
        TEXT_CODES.into_iter().find(|code| message.starts_with(code)).unwrap_or("E-SCHEMA")
    };
    Fault::new(code, pointer, "a field of the record's schema (manifests/schemas)", message)
}

fn holds_integers(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| item.is_number() || holds_integers(item)),
        Value::Object(fields) => fields.values().any(holds_integers),
        _ => false,
    }
}

fn is_free_text(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.contains(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)))
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
