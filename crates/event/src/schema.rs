//! The JSON Schema of the event model, made from the types.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::Event;

/// The schema that `multitap schema` prints.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Event>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "UnifiedAgentEvent".into());
    }
    schema
}
