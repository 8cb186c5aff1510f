//! JSON Schemas of the records, generated from their types.

use schemars::{JsonSchema, schema_for};

use crate::certificate::ObjectReuse;
use crate::manifest::Manifest;
use crate::receipt::RuntimeBuild;

/// File name in manifests/schemas and text of each schema of a receipt.
#[must_use]
pub fn receipts() -> Vec<(&'static str, String)> {
    vec![
        ("object-reuse.v1.schema.json", text::<ObjectReuse>()),
        ("runtime-build.v1.schema.json", text::<RuntimeBuild>()),
    ]
}

/// File name in manifests/schemas and text of each schema of a manifest.
#[must_use]
pub fn manifests() -> Vec<(&'static str, String)> {
    vec![("runtime.v1.schema.json", text::<Manifest>())]
}

fn text<T: JsonSchema>() -> String {
    let schema = schema_for!(T);
    serde_json::to_string_pretty(schema.as_value()).unwrap_or_default() + "\n"
}
