//! Reads a card of any form. If it has the fields of both versions, those of 1.0 count.

use serde_json::Value;

use super::security::{SecurityScheme, read_requirements};
use super::{Binding, Capabilities, Card, Extension, Interface, Provider, Skill};
use crate::dialect::Dialect;
use crate::error::Error;
use crate::model::Map;
use crate::read::Node;

impl Card {
    /// Requires a name and an interface; every other field may be missing.
    pub fn read(value: &Value) -> Result<Self, Error> {
        let node = Node::of_agent("card", value)?;
        let text = |key| Ok::<_, Error>(node.opt_string(key)?.unwrap_or_default());
        Ok(Self {
            name: node.id("name")?,
            description: text("description")?,
            version: text("version")?,
            provider: node.opt_inside("provider", provider)?,
            documentation_url: node.opt_string("documentationUrl")?,
            icon_url: node.opt_string("iconUrl")?,
            interfaces: interfaces(&node)?,
            capabilities: capabilities(&node)?,
            security_schemes: node.opt_inside("securitySchemes", security_schemes)?.unwrap_or_default(),
            security_requirements: read_requirements(&node)?,
            input_modes: node.strings("defaultInputModes")?,
            output_modes: node.strings("defaultOutputModes")?,
            skills: node.each_object("skills", skill)?,
        })
    }
}

fn provider(node: &Node<'_>) -> Result<Provider, Error> {
    let text = |key| Ok::<_, Error>(node.opt_string(key)?.unwrap_or_default());
    Ok(Provider { organization: text("organization")?, url: text("url")? })
}

fn interfaces(node: &Node<'_>) -> Result<Vec<Interface>, Error> {
    let listed = node.each_object("supportedInterfaces", interface_1_0)?;
    if !listed.is_empty() {
        return Ok(listed);
    }
    let url = node.get("url").ok_or_else(|| node.wrong("must hold supportedInterfaces or url"))?.str()?;
    let transport = node.opt_string("preferredTransport")?.unwrap_or_else(|| "JSONRPC".to_owned());
    let version = match node.opt_string("protocolVersion")? {
        // A version that we do not speak is stored as it is, for error messages.
        Some(version) => Dialect::of_version(&version).map_or(version, |dialect| dialect.version().to_owned()),
        None => Dialect::V0_3.version().to_owned(),
    };
    let of = |url: &str, transport: &str| Interface {
        url: url.to_owned(),
        binding: Binding::from(transport),
        version: version.clone(),
        tenant: None,
    };
    let mut interfaces = node
        .each_object("additionalInterfaces", |node| Ok(of(node.need("url")?.str()?, node.need("transport")?.str()?)))?;
    let main = of(url, &transport);
    // The preferred interface comes first, whether the list contains it or not.
    interfaces.retain(|interface| *interface != main);
    interfaces.insert(0, main);
    Ok(interfaces)
}

fn interface_1_0(node: &Node<'_>) -> Result<Interface, Error> {
    Ok(Interface {
        url: node.id("url")?,
        binding: Binding::from(node.opt_string("protocolBinding")?.as_deref().unwrap_or("JSONRPC")),
        version: node.opt_string("protocolVersion")?.unwrap_or_else(|| Dialect::V1_0.version().to_owned()),
        tenant: node.opt_string("tenant")?.filter(|tenant| !tenant.is_empty()),
    })
}

fn capabilities(card: &Node<'_>) -> Result<Capabilities, Error> {
    let extended = card.flag("supportsAuthenticatedExtendedCard")?;
    let read = card.opt_inside("capabilities", |node| {
        Ok(Capabilities {
            streaming: node.flag("streaming")?,
            push_notifications: node.flag("pushNotifications")?,
            state_transition_history: node.flag("stateTransitionHistory")?,
            extended_card: node.flag("extendedAgentCard")? || extended,
            extensions: node.each_object("extensions", extension)?,
        })
    })?;
    Ok(read.unwrap_or(Capabilities { extended_card: extended, ..Capabilities::default() }))
}

fn extension(node: &Node<'_>) -> Result<Extension, Error> {
    Ok(Extension {
        uri: node.opt_string("uri")?.unwrap_or_default(),
        description: node.opt_string("description")?,
        required: node.flag("required")?,
        params: node.get("params").map(|params| params.value().clone()),
    })
}

fn security_schemes(node: &Node<'_>) -> Result<Vec<(String, SecurityScheme)>, Error> {
    let names = node.value().as_object().into_iter().flat_map(Map::keys);
    names.map(|name| Ok((name.clone(), node.inside(name, SecurityScheme::read)?))).collect()
}

fn skill(node: &Node<'_>) -> Result<Skill, Error> {
    let text = |key| Ok::<_, Error>(node.opt_string(key)?.unwrap_or_default());
    Ok(Skill {
        id: text("id")?,
        name: text("name")?,
        description: text("description")?,
        tags: node.strings("tags")?,
        examples: node.strings("examples")?,
        input_modes: node.strings("inputModes")?,
        output_modes: node.strings("outputModes")?,
        security_requirements: read_requirements(node)?,
    })
}
