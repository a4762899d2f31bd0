//! The model providers: their APIs, and the variables with their keys and addresses.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Vendor {
    Anthropic,
    OpenAi,
    Gemini,
}

impl Vendor {
    /// In the order in which a default is looked for.
    pub(crate) const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// The word before the slash of `--model`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }

    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic",
            Self::OpenAi => "OpenAI",
            Self::Gemini => "Gemini",
        }
    }

    /// The variables of its key, the first that is set counts.
    pub(crate) fn key_vars(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY or GOOGLE_API_KEY",
        }
    }

    pub(crate) fn url_var(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Gemini => "GOOGLE_GEMINI_BASE_URL",
        }
    }

    /// Its default address, and the part of the path that people may leave out.
    pub(super) fn home(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("https://api.anthropic.com/v1", "/v1"),
            Self::OpenAi => ("https://api.openai.com/v1", ""),
            Self::Gemini => ("https://generativelanguage.googleapis.com/v1beta", "/v1beta"),
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "anthropic" | "claude" => Some(Self::Anthropic),
            "openai" => Some(Self::OpenAi),
            "gemini" | "google" => Some(Self::Gemini),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Api {
    Messages,
    Responses,
    /// Chat completions, which almost every local server speaks.
    Chat,
    GenerateContent,
}
