//! Changes of a record that a tampering case names by JSON pointers.

use std::collections::BTreeMap;

use serde_json::Value;

/// Sets values (`-` is behind an array's last), then removes, then reverses a list of `record`.
pub(crate) fn apply(
    record: &mut Value,
    set: &BTreeMap<String, Value>,
    remove: &[String],
    reverse: Option<&str>,
) {
    for (pointer, value) in set {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match record.pointer_mut(parent).unwrap() {
            Value::Array(items) if key == "-" => items.push(value.clone()),
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
            fields => fields[key] = value.clone(),
        }
    }
    for pointer in remove {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match record.pointer_mut(parent).unwrap() {
            Value::Array(items) => drop(items.remove(key.parse().unwrap())),
            fields => assert!(fields.as_object_mut().unwrap().remove(key).is_some(), "{pointer}"),
        }
    }
    if let Some(pointer) = reverse {
        record.pointer_mut(pointer).unwrap().as_array_mut().unwrap().reverse();
    }
}
