//! Writes a card for 0.3, for 1.0, or for both; empty fields are left out.

use serde_json::{Value, json};

use super::security::{requirements_0_3, requirements_1_0};
use super::{Binding, Capabilities, Card, Extension, Form, Interface, Skill};
use crate::dialect::Dialect;
use crate::model::Map;
use crate::write::{filled, present};

impl Form {
    /// A field that only 0.3 has.
    fn of_0_3<T>(self, field: impl FnOnce() -> T) -> Option<T> {
        (self != Self::V1_0).then(field)
    }

    /// A field that only 1.0 has.
    fn of_1_0<T>(self, field: impl FnOnce() -> T) -> Option<T> {
        matches!(self, Self::V1_0 | Self::Hybrid).then(field)
    }
}

impl Card {
    /// 0.3 can only list interfaces of its own version; 1.0 lists all, each with its version.
    pub fn write(&self, form: Form) -> Value {
        let ours: Vec<_> = self.interfaces.iter().filter(|it| it.dialect() == Some(Dialect::V0_3)).collect();
        // `url` is for clients that ignore the list of interfaces: prefer JSON-RPC.
        let main = ours.iter().find(|it| it.binding == Binding::JsonRpc).or(ours.first());
        let main = form.of_0_3(|| main).flatten();
        // Strict clients of 0.3 refuse a card with any other word.
        let known = ours.iter().filter(|it| !matches!(it.binding, Binding::Other(_)));
        let listed = known.map(|it| json!({ "url": it.url, "transport": it.binding.as_str() }));
        let schemes = self.security_schemes.iter().map(|(name, scheme)| (name.clone(), scheme.write(form)));
        let provider = self.provider.as_ref();
        let required = filled(&self.security_requirements);
        Value::Object(present(json!({
            "protocolVersion": form.of_0_3(|| "0.3.0"),
            "name": self.name,
            "description": self.description,
            "version": self.version,
            "url": main.map(|it| &it.url),
            "preferredTransport": main.map(|it| it.binding.as_str()),
            "additionalInterfaces": main.map(|_| listed.collect::<Vec<_>>()),
            "supportedInterfaces": form.of_1_0(|| self.interfaces.iter().map(interface_1_0).collect::<Vec<_>>()),
            "provider": provider.map(|it| json!({ "organization": it.organization, "url": it.url })),
            "documentationUrl": self.documentation_url,
            "iconUrl": self.icon_url,
            "capabilities": write_capabilities(&self.capabilities, form),
            "supportsAuthenticatedExtendedCard": form.of_0_3(|| self.capabilities.extended_card),
            "securitySchemes": filled(&schemes.collect::<Map>()),
            "security": required.and_then(|all| form.of_0_3(|| requirements_0_3(all, form))),
            "securityRequirements": required.and_then(|all| form.of_1_0(|| requirements_1_0(all))),
            "defaultInputModes": self.input_modes,
            "defaultOutputModes": self.output_modes,
            "skills": self.skills.iter().map(|skill| write_skill(skill, form)).collect::<Vec<_>>(),
        })))
    }
}

fn write_capabilities(capabilities: &Capabilities, form: Form) -> Map {
    let extensions: Vec<_> = capabilities.extensions.iter().map(write_extension).collect();
    present(json!({
        "streaming": capabilities.streaming,
        "pushNotifications": capabilities.push_notifications,
        "stateTransitionHistory": form.of_0_3(|| capabilities.state_transition_history),
        "extendedAgentCard": form.of_1_0(|| capabilities.extended_card),
        "extensions": filled(&extensions),
    }))
}

fn interface_1_0(interface: &Interface) -> Map {
    present(json!({
        "url": interface.url,
        "protocolBinding": interface.binding.as_str(),
        "protocolVersion": interface.version,
        "tenant": interface.tenant,
    }))
}

fn write_extension(extension: &Extension) -> Map {
    present(json!({
        "uri": extension.uri,
        "description": extension.description,
        "required": extension.required,
        "params": extension.params,
    }))
}

fn write_skill(skill: &Skill, form: Form) -> Map {
    let required = filled(&skill.security_requirements);
    present(json!({
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": skill.tags,
        "examples": filled(&skill.examples),
        "inputModes": filled(&skill.input_modes),
        "outputModes": filled(&skill.output_modes),
        "security": required.and_then(|all| form.of_0_3(|| requirements_0_3(all, form))),
        "securityRequirements": required.and_then(|all| form.of_1_0(|| requirements_1_0(all))),
    }))
}
