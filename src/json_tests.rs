//! Tests of receipt JSON: each refusal by its code and pointer, and that writing and reading are inverse.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn refusal(text: &str) -> (&'static str, String) {
    let fault = read(text.as_bytes()).expect_err(text);
    (fault.code, fault.pointer)
}

#[test]
fn each_fault_has_its_code_and_pointer() {
    let deep = "[".repeat(40);
    let cases = [
        ("\u{feff}{}\n", "E-JSON-ENCODING", ""),
        ("{\r\n}\n", "E-JSON-ENCODING", ""),
        ("{\"a\": \"\\ud800\"}", "E-JSON-ENCODING", "/a"),
        ("{\"a\": \"\\udc00\"}", "E-JSON-ENCODING", "/a"),
        ("{\"a\": \"\\ud800\\u0041\"}", "E-JSON-ENCODING", "/a"),
        ("{\"é\": 1}", "E-JSON-ENCODING", "/é"),
        ("{\"a\": {\"b\": 1, \"b\": 2}}", "E-JSON-DUPKEY", "/a/b"),
        ("{\"a\": [1, 82.0]}", "E-JSON-NUMBER", "/a/1"),
        ("{\"a\": 8.2e1}", "E-JSON-NUMBER", "/a"),
        ("{\"a\": -0}", "E-JSON-NUMBER", "/a"),
        ("{\"a\": 9007199254740993}", "E-JSON-NUMBER", "/a"),
        ("{\"a\": -9007199254740993}", "E-JSON-NUMBER", "/a"),
        ("{\"a\": 1e999}", "E-JSON-NUMBER", "/a"),
        ("{\"a/b\": null}", "E-JSON-NULL", "/a~1b"),
        ("{\"a\": \"\"}", "E-JSON-EMPTY", "/a"),
        ("{\"\": 1}", "E-JSON-EMPTY", "/"),
        ("{\"a\": 1} ", "E-JSON-NOTCANONICAL", ""),
        ("{\n  \"b\": 1,\n  \"a\": 1\n}\n", "E-JSON-NOTCANONICAL", ""),
        ("{\n  \"a\": \"\\u0041\"\n}\n", "E-JSON-NOTCANONICAL", ""),
        (&deep, "E-JSON-LIMIT", &"/0".repeat(33)),
        ("{\"a\": ", "E-JSON-SYNTAX", "/a"),
        ("{} {}", "E-JSON-SYNTAX", ""),
    ];
    for (text, code, pointer) in cases {
        assert_eq!(refusal(text), (code, pointer.to_owned()), "{text}");
    }
    assert_eq!(read(b"\"\xff\"").unwrap_err().code, "E-JSON-ENCODING");
    assert_eq!(read(&vec![b' '; LONGEST_BYTES + 1]).unwrap_err().code, "E-JSON-LIMIT");
    let many = format!("[{}1]", "1,".repeat(MOST_NODES));
    assert_eq!(read(many.as_bytes()).unwrap_err().code, "E-JSON-LIMIT");
}

#[test]
fn the_writer_sorts_and_refuses_what_the_reader_refuses() {
    let text = write(&json!({"b": [], "a": {"d": 1, "c": ["x", {}]}})).unwrap();
    insta::assert_snapshot!(String::from_utf8(text).unwrap(), @r#"
    {
      "a": {
        "c": [
          "x",
          {}
        ],
        "d": 1
      },
      "b": []
    }
    "#);
    for (bad, code) in [
        (json!({"a": 1.5}), "E-JSON-NUMBER"),
        (json!({"a": null}), "E-JSON-NULL"),
        (json!([""]), "E-JSON-EMPTY"),
    ] {
        assert_eq!(write(&bad).unwrap_err().code, code);
    }
}

/// Values that receipt JSON can hold.
fn values() -> impl Strategy<Value = Value> {
    let integer = -(LARGEST_INTEGER as i64)..=(LARGEST_INTEGER as i64);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        integer.prop_map(Value::from),
        "\\PC{1,12}".prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[ -~]{1,8}", inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn reading_undoes_writing(value in values()) {
        prop_assert_eq!(read(&write(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn what_is_read_is_what_would_be_written(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:0123-.e\\u a\n\r".to_vec()), 0..40)) {
        if let Ok(value) = read(&bytes) {
            prop_assert_eq!(write(&value).unwrap(), bytes);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }
}
