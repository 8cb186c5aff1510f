//! JSON Schemas of the records, generated from their types.

use crate::receipt::RuntimeBuild;

/// File name in manifests/schemas and text of each schema.
#[must_use]
pub fn all() -> Vec<(&'static str, String)> {
    let schema = schemars::schema_for!(RuntimeBuild);
    let text = serde_json::to_string_pretty(schema.as_value()).unwrap_or_default();
    vec![("runtime-build.v1.schema.json", text + "\n")]
}
