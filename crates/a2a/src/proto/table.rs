//! The messages of A2A 1.0 and their fields.

/// The fields of a message, by number.
#[derive(Debug)]
pub(crate) struct MessageType(pub(super) &'static [Field]);

impl MessageType {
    pub(super) fn field(&self, number: u32) -> Option<&'static Field> {
        self.0.iter().find(|field| field.number == number)
    }
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(super) number: u32,
    /// The name in JSON.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) rule: Rule,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Bool,
    Int32,
    /// In JSON, base64.
    Bytes,
    Enum(Enum),
    Message(&'static MessageType),
    /// `google.protobuf.Timestamp`: in JSON, RFC 3339.
    Timestamp,
    /// `google.protobuf.Struct`: in JSON, any object.
    Struct,
    /// `google.protobuf.Value`: in JSON, any value.
    Value,
}

/// The names of an enum, by number.
pub(crate) type Enum = &'static [&'static str];

/// How often a field occurs, and whether its default value counts as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The default value is the same as no value.
    Plain,
    Optional,
    /// At most one of these fields of a message. No message here has two such groups.
    OneOf,
    Repeated,
    /// An object whose members are of the kind.
    Map,
}

const fn field(number: u32, name: &'static str, kind: Kind, rule: Rule) -> Field {
    Field { number, name, kind, rule }
}

const fn plain(number: u32, name: &'static str, kind: Kind) -> Field {
    field(number, name, kind, Rule::Plain)
}

const fn text(number: u32, name: &'static str) -> Field {
    plain(number, name, Kind::Text)
}

const fn message(number: u32, name: &'static str, of: &'static MessageType) -> Field {
    field(number, name, Kind::Message(of), Rule::Optional)
}

const fn object(number: u32, name: &'static str) -> Field {
    field(number, name, Kind::Struct, Rule::Optional)
}

const fn optional(number: u32, name: &'static str, kind: Kind) -> Field {
    field(number, name, kind, Rule::Optional)
}

const fn one_of(number: u32, name: &'static str, kind: Kind) -> Field {
    field(number, name, kind, Rule::OneOf)
}

const fn list(number: u32, name: &'static str, kind: Kind) -> Field {
    field(number, name, kind, Rule::Repeated)
}

const fn map(number: u32, name: &'static str, kind: Kind) -> Field {
    field(number, name, kind, Rule::Map)
}

/// The messages.
pub(crate) mod messages {
    use super::Kind::{Bool, Bytes, Int32, Message as Of, Text, Timestamp, Value};
    use super::{Enum, Kind, MessageType, list, map, message, object, one_of, optional, plain, text};

    const TASK_STATE: Enum = &[
        "TASK_STATE_UNSPECIFIED",
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",
        "TASK_STATE_FAILED",
        "TASK_STATE_CANCELED",
        "TASK_STATE_INPUT_REQUIRED",
        "TASK_STATE_REJECTED",
        "TASK_STATE_AUTH_REQUIRED",
    ];
    const ROLE: Enum = &["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"];

    pub(crate) static EMPTY: MessageType = MessageType(&[]);

    pub(crate) static TASK: MessageType = MessageType(&[
        text(1, "id"),
        text(2, "contextId"),
        message(3, "status", &TASK_STATUS),
        list(4, "artifacts", Of(&ARTIFACT)),
        list(5, "history", Of(&MESSAGE)),
        object(6, "metadata"),
    ]);
    static TASK_STATUS: MessageType = MessageType(&[
        plain(1, "state", Kind::Enum(TASK_STATE)),
        message(2, "message", &MESSAGE),
        optional(3, "timestamp", Timestamp),
    ]);
    static MESSAGE: MessageType = MessageType(&[
        text(1, "messageId"),
        text(2, "contextId"),
        text(3, "taskId"),
        plain(4, "role", Kind::Enum(ROLE)),
        list(5, "parts", Of(&PART)),
        object(6, "metadata"),
        list(7, "extensions", Text),
        list(8, "referenceTaskIds", Text),
    ]);
    static PART: MessageType = MessageType(&[
        one_of(1, "text", Text),
        one_of(2, "raw", Bytes),
        one_of(3, "url", Text),
        one_of(4, "data", Value),
        object(5, "metadata"),
        text(6, "filename"),
        text(7, "mediaType"),
    ]);
    static ARTIFACT: MessageType = MessageType(&[
        text(1, "artifactId"),
        text(2, "name"),
        text(3, "description"),
        list(4, "parts", Of(&PART)),
        object(5, "metadata"),
        list(6, "extensions", Text),
    ]);
    static STATUS_UPDATE: MessageType = MessageType(&[
        text(1, "taskId"),
        text(2, "contextId"),
        message(3, "status", &TASK_STATUS),
        object(4, "metadata"),
    ]);
    static ARTIFACT_UPDATE: MessageType = MessageType(&[
        text(1, "taskId"),
        text(2, "contextId"),
        message(3, "artifact", &ARTIFACT),
        plain(4, "append", Bool),
        plain(5, "lastChunk", Bool),
        object(6, "metadata"),
    ]);

    pub(crate) static SEND_MESSAGE_REQUEST: MessageType = MessageType(&[
        text(1, "tenant"),
        message(2, "message", &MESSAGE),
        message(3, "configuration", &SEND_CONFIGURATION),
        object(4, "metadata"),
    ]);
    static SEND_CONFIGURATION: MessageType = MessageType(&[
        list(1, "acceptedOutputModes", Text),
        message(2, "taskPushNotificationConfig", &PUSH_CONFIG),
        optional(3, "historyLength", Int32),
        plain(4, "returnImmediately", Bool),
    ]);
    pub(crate) static SEND_MESSAGE_RESPONSE: MessageType =
        MessageType(&[one_of(1, "task", Of(&TASK)), one_of(2, "message", Of(&MESSAGE))]);
    pub(crate) static STREAM_RESPONSE: MessageType = MessageType(&[
        one_of(1, "task", Of(&TASK)),
        one_of(2, "message", Of(&MESSAGE)),
        one_of(3, "statusUpdate", Of(&STATUS_UPDATE)),
        one_of(4, "artifactUpdate", Of(&ARTIFACT_UPDATE)),
    ]);
    pub(crate) static GET_TASK_REQUEST: MessageType =
        MessageType(&[text(1, "tenant"), text(2, "id"), optional(3, "historyLength", Int32)]);
    pub(crate) static LIST_TASKS_REQUEST: MessageType = MessageType(&[
        text(1, "tenant"),
        text(2, "contextId"),
        plain(3, "status", Kind::Enum(TASK_STATE)),
        optional(4, "pageSize", Int32),
        text(5, "pageToken"),
        optional(6, "historyLength", Int32),
        optional(7, "statusTimestampAfter", Timestamp),
        optional(8, "includeArtifacts", Bool),
    ]);
    pub(crate) static LIST_TASKS_RESPONSE: MessageType = MessageType(&[
        list(1, "tasks", Of(&TASK)),
        text(2, "nextPageToken"),
        plain(3, "pageSize", Int32),
        plain(4, "totalSize", Int32),
    ]);
    pub(crate) static CANCEL_TASK_REQUEST: MessageType =
        MessageType(&[text(1, "tenant"), text(2, "id"), object(3, "metadata")]);
    pub(crate) static SUBSCRIBE_REQUEST: MessageType = MessageType(&[text(1, "tenant"), text(2, "id")]);

    pub(crate) static PUSH_CONFIG: MessageType = MessageType(&[
        text(1, "tenant"),
        text(2, "id"),
        text(3, "taskId"),
        text(4, "url"),
        text(5, "token"),
        message(6, "authentication", &AUTHENTICATION),
    ]);
    static AUTHENTICATION: MessageType = MessageType(&[text(1, "scheme"), text(2, "credentials")]);
    /// Of getting and of deleting one.
    pub(crate) static PUSH_CONFIG_REQUEST: MessageType =
        MessageType(&[text(1, "tenant"), text(2, "taskId"), text(3, "id")]);
    pub(crate) static LIST_PUSH_CONFIGS_REQUEST: MessageType =
        MessageType(&[text(1, "taskId"), plain(2, "pageSize", Int32), text(3, "pageToken"), text(4, "tenant")]);
    pub(crate) static LIST_PUSH_CONFIGS_RESPONSE: MessageType =
        MessageType(&[list(1, "configs", Of(&PUSH_CONFIG)), text(2, "nextPageToken")]);

    pub(crate) static CARD_REQUEST: MessageType = MessageType(&[text(1, "tenant")]);
    pub(crate) static CARD: MessageType = MessageType(&[
        text(1, "name"),
        text(2, "description"),
        list(3, "supportedInterfaces", Of(&INTERFACE)),
        message(4, "provider", &PROVIDER),
        text(5, "version"),
        optional(6, "documentationUrl", Text),
        message(7, "capabilities", &CAPABILITIES),
        map(8, "securitySchemes", Of(&SECURITY_SCHEME)),
        list(9, "securityRequirements", Of(&SECURITY_REQUIREMENT)),
        list(10, "defaultInputModes", Text),
        list(11, "defaultOutputModes", Text),
        list(12, "skills", Of(&SKILL)),
        list(13, "signatures", Of(&SIGNATURE)),
        optional(14, "iconUrl", Text),
    ]);
    static INTERFACE: MessageType =
        MessageType(&[text(1, "url"), text(2, "protocolBinding"), text(3, "tenant"), text(4, "protocolVersion")]);
    static PROVIDER: MessageType = MessageType(&[text(1, "url"), text(2, "organization")]);
    static CAPABILITIES: MessageType = MessageType(&[
        optional(1, "streaming", Bool),
        optional(2, "pushNotifications", Bool),
        list(3, "extensions", Of(&EXTENSION)),
        optional(4, "extendedAgentCard", Bool),
    ]);
    static EXTENSION: MessageType =
        MessageType(&[text(1, "uri"), text(2, "description"), plain(3, "required", Bool), object(4, "params")]);
    static SKILL: MessageType = MessageType(&[
        text(1, "id"),
        text(2, "name"),
        text(3, "description"),
        list(4, "tags", Text),
        list(5, "examples", Text),
        list(6, "inputModes", Text),
        list(7, "outputModes", Text),
        list(8, "securityRequirements", Of(&SECURITY_REQUIREMENT)),
    ]);
    static SIGNATURE: MessageType = MessageType(&[text(1, "protected"), text(2, "signature"), object(3, "header")]);
    static SECURITY_REQUIREMENT: MessageType = MessageType(&[map(1, "schemes", Of(&STRING_LIST))]);
    static STRING_LIST: MessageType = MessageType(&[list(1, "list", Text)]);
    static SECURITY_SCHEME: MessageType = MessageType(&[
        one_of(1, "apiKeySecurityScheme", Of(&API_KEY)),
        one_of(2, "httpAuthSecurityScheme", Of(&HTTP_AUTH)),
        one_of(3, "oauth2SecurityScheme", Of(&OAUTH2)),
        one_of(4, "openIdConnectSecurityScheme", Of(&OPEN_ID_CONNECT)),
        one_of(5, "mtlsSecurityScheme", Of(&MUTUAL_TLS)),
    ]);
    static API_KEY: MessageType = MessageType(&[text(1, "description"), text(2, "location"), text(3, "name")]);
    static HTTP_AUTH: MessageType = MessageType(&[text(1, "description"), text(2, "scheme"), text(3, "bearerFormat")]);
    static OAUTH2: MessageType =
        MessageType(&[text(1, "description"), message(2, "flows", &FLOWS), text(3, "oauth2MetadataUrl")]);
    static OPEN_ID_CONNECT: MessageType = MessageType(&[text(1, "description"), text(2, "openIdConnectUrl")]);
    static MUTUAL_TLS: MessageType = MessageType(&[text(1, "description")]);
    static FLOWS: MessageType = MessageType(&[
        one_of(1, "authorizationCode", Of(&AUTHORIZATION_CODE)),
        one_of(2, "clientCredentials", Of(&TOKEN_FLOW)),
        one_of(3, "implicit", Of(&IMPLICIT)),
        one_of(4, "password", Of(&TOKEN_FLOW)),
        one_of(5, "deviceCode", Of(&DEVICE_CODE)),
    ]);
    static AUTHORIZATION_CODE: MessageType = MessageType(&[
        text(1, "authorizationUrl"),
        text(2, "tokenUrl"),
        text(3, "refreshUrl"),
        map(4, "scopes", Text),
        plain(5, "pkceRequired", Bool),
    ]);
    /// Of client credentials and of passwords.
    static TOKEN_FLOW: MessageType = MessageType(&[text(1, "tokenUrl"), text(2, "refreshUrl"), map(3, "scopes", Text)]);
    static IMPLICIT: MessageType =
        MessageType(&[text(1, "authorizationUrl"), text(2, "refreshUrl"), map(3, "scopes", Text)]);
    static DEVICE_CODE: MessageType = MessageType(&[
        text(1, "deviceAuthorizationUrl"),
        text(2, "tokenUrl"),
        text(3, "refreshUrl"),
        map(4, "scopes", Text),
    ]);

    /// `google.rpc.Status`. In JSON its details are base64 here, not the messages that they hold.
    pub(crate) static STATUS: MessageType =
        MessageType(&[plain(1, "code", Int32), text(2, "message"), list(3, "details", Of(&ANY))]);
    static ANY: MessageType = MessageType(&[text(1, "typeUrl"), plain(2, "value", Bytes)]);
    /// `google.rpc.ErrorInfo`.
    pub(crate) static ERROR_INFO: MessageType =
        MessageType(&[text(1, "reason"), text(2, "domain"), map(3, "metadata", Text)]);
    /// `google.protobuf.Struct` as a message of its own.
    pub(crate) static STRUCT: MessageType = MessageType(&[map(1, "fields", Value)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a message to all that it holds.
    fn check(message: &'static MessageType, depth: usize) {
        assert!(depth < 16, "messages that hold themselves would have no bound");
        for (at, field) in message.0.iter().enumerate() {
            let before = &message.0[..at];
            assert!(before.iter().all(|other| other.number < field.number), "{}: fields rise", field.name);
            assert!(before.iter().all(|other| other.name != field.name), "{}: twice", field.name);
            if let Kind::Message(inner) = field.kind {
                check(inner, depth + 1);
            }
        }
    }

    #[test]
    fn fields_rise_and_no_message_holds_itself() {
        for message in [&messages::SEND_MESSAGE_REQUEST, &messages::STREAM_RESPONSE, &messages::CARD, &messages::STATUS]
        {
            check(message, 0);
        }
    }
}
