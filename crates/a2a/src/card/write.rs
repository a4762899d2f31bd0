//! The card as 0.3 has it, as 1.0 has it, and as both.

use serde_json::{Value, json};

use super::security::{SecurityRequirement, requirement_0_3, requirement_1_0};
use super::{Binding, Card, Extension, Form, Interface, Skill};
use crate::dialect::Dialect;
use crate::model::Map;

/// A card written field by field; what is empty is left out.
#[derive(Default)]
struct Fields(Map);

impl Fields {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn optional<T: Into<Value>>(&mut self, key: &str, value: Option<T>) {
        self.0.extend(value.map(|value| (key.to_owned(), value.into())));
    }

    fn list(&mut self, key: &str, list: Vec<Value>) {
        self.0.extend((!list.is_empty()).then(|| (key.to_owned(), Value::Array(list))));
    }

    fn strings(&mut self, key: &str, list: &[String]) {
        self.list(key, list.iter().map(|text| json!(text)).collect());
    }

    fn requirements(&mut self, form: Form, list: &[SecurityRequirement]) {
        if form != Form::V1_0 {
            self.list("security", list.iter().map(requirement_0_3).collect());
        }
        if form != Form::V0_3 {
            self.list("securityRequirements", list.iter().map(requirement_1_0).collect());
        }
    }
}

impl Card {
    /// 0.3 can only list interfaces of its own dialect; 1.0 lists all, each with its version.
    pub fn write(&self, form: Form) -> Value {
        let mut card = Fields::default();
        if form != Form::V1_0 {
            card.put("protocolVersion", "0.3.0");
        }
        card.put("name", self.name.as_str());
        card.put("description", self.description.as_str());
        card.put("version", self.version.as_str());
        if form != Form::V1_0 {
            self.write_0_3_interfaces(&mut card);
        }
        if form != Form::V0_3 {
            card.put("supportedInterfaces", self.interfaces.iter().map(interface_1_0).collect::<Vec<_>>());
        }
        let provider = self.provider.as_ref();
        card.optional("provider", provider.map(|it| json!({ "organization": it.organization, "url": it.url })));
        card.optional("documentationUrl", self.documentation_url.as_deref());
        card.optional("iconUrl", self.icon_url.as_deref());
        card.put("capabilities", self.write_capabilities(form));
        if form != Form::V1_0 {
            card.put("supportsAuthenticatedExtendedCard", self.capabilities.extended_card);
        }
        if !self.security_schemes.is_empty() {
            let schemes = self.security_schemes.iter().map(|(name, scheme)| (name.clone(), scheme.write(form)));
            card.put("securitySchemes", schemes.collect::<Map>());
        }
        card.requirements(form, &self.security_requirements);
        card.put("defaultInputModes", self.input_modes.clone());
        card.put("defaultOutputModes", self.output_modes.clone());
        card.put("skills", self.skills.iter().map(|skill| write_skill(skill, form)).collect::<Vec<_>>());
        Value::Object(card.0)
    }

    /// `url` is where a client goes that looks no further, so JSON-RPC if there is any.
    fn write_0_3_interfaces(&self, card: &mut Fields) {
        let ours: Vec<_> = self.interfaces.iter().filter(|it| it.dialect() == Some(Dialect::V0_3)).collect();
        let main = ours.iter().find(|it| it.binding == Binding::JsonRpc).or(ours.first());
        let Some(main) = main else { return };
        card.put("url", main.url.as_str());
        card.put("preferredTransport", main.binding.as_str());
        let all = ours.iter().map(|it| json!({ "url": it.url, "transport": it.binding.as_str() }));
        card.put("additionalInterfaces", all.collect::<Vec<_>>());
    }

    fn write_capabilities(&self, form: Form) -> Value {
        let capabilities = &self.capabilities;
        let mut fields = Fields::default();
        fields.put("streaming", capabilities.streaming);
        fields.put("pushNotifications", capabilities.push_notifications);
        if form != Form::V1_0 {
            fields.put("stateTransitionHistory", capabilities.state_transition_history);
        }
        if form != Form::V0_3 {
            fields.put("extendedAgentCard", capabilities.extended_card);
        }
        fields.list("extensions", capabilities.extensions.iter().map(write_extension).collect());
        Value::Object(fields.0)
    }
}

fn interface_1_0(interface: &Interface) -> Value {
    let mut fields = Fields::default();
    fields.put("url", interface.url.as_str());
    fields.put("protocolBinding", interface.binding.as_str());
    fields.put("protocolVersion", interface.version.as_str());
    fields.optional("tenant", interface.tenant.as_deref());
    Value::Object(fields.0)
}

fn write_extension(extension: &Extension) -> Value {
    let mut fields = Fields::default();
    fields.put("uri", extension.uri.as_str());
    fields.optional("description", extension.description.as_deref());
    fields.put("required", extension.required);
    fields.optional("params", extension.params.clone());
    Value::Object(fields.0)
}

fn write_skill(skill: &Skill, form: Form) -> Value {
    let mut fields = Fields::default();
    fields.put("id", skill.id.as_str());
    fields.put("name", skill.name.as_str());
    fields.put("description", skill.description.as_str());
    fields.put("tags", skill.tags.clone());
    fields.strings("examples", &skill.examples);
    fields.strings("inputModes", &skill.input_modes);
    fields.strings("outputModes", &skill.output_modes);
    fields.requirements(form, &skill.security_requirements);
    Value::Object(fields.0)
}
