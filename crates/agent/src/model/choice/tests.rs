use std::collections::BTreeMap;

use super::*;

fn providers(env: &[(&str, &str)]) -> Providers {
    let env: BTreeMap<_, _> = env.iter().copied().collect();
    Providers::from_env(|name| env.get(name).map(|value| (*value).to_owned())).unwrap()
}

const ALL_KEYS: &[(&str, &str)] =
    &[("ANTHROPIC_API_KEY", "sk-ant"), ("OPENAI_API_KEY", "sk-open"), ("GOOGLE_API_KEY", "sk-goog")];

fn name(choice: &Choice) -> String {
    match choice {
        Choice::Rehearsal => REHEARSAL.to_owned(),
        Choice::Live(target) => target.name(),
    }
}

fn named(providers: &Providers, asked: &str) -> String {
    providers.choose(Some(asked)).map_or_else(|error| error.to_string(), |choice| name(&choice))
}

#[test]
fn a_name_finds_its_provider() {
    let all = providers(ALL_KEYS);
    for (asked, meant) in [
        ("anthropic/claude-sonnet-5-5", "anthropic/claude-sonnet-5-5"),
        ("openai/my/tuned", "openai/my/tuned"),
        ("google/gemini-3.8-flash", "gemini/gemini-3.8-flash"),
        ("claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("gpt-6-sol", "openai/gpt-6-sol"),
        ("o3-mini", "openai/o3-mini"),
        ("chatgpt-4o-latest", "openai/chatgpt-4o-latest"),
        ("codex-mini-latest", "openai/codex-mini-latest"),
        ("gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("Rehearsal", "rehearsal"),
    ] {
        assert_eq!(named(&all, asked), meant);
    }
}

#[test]
fn an_unknown_name_goes_where_it_can_only_go() {
    assert!(named(&providers(ALL_KEYS), "llama4").starts_with("unknown provider of the model 'llama4'"));
    assert_eq!(named(&providers(&[("GEMINI_API_KEY", "k")]), "llama4"), "gemini/llama4");
    let local = providers(&[("OPENAI_BASE_URL", "http://localhost:11434/v1"), ("ANTHROPIC_API_KEY", "k")]);
    assert_eq!(named(&local, "qwen/qwen3-coder:30b"), "openai/qwen/qwen3-coder:30b");
    assert_eq!(
        named(&providers(ALL_KEYS), "mistral/large"),
        "unknown provider 'mistral': use anthropic/large, openai/large, gemini/large or rehearsal"
    );
    assert_eq!(
        named(&providers(ALL_KEYS), "openai/"),
        format!("'openai/' names a provider but no model, such as openai/{}", catalog::default(Vendor::OpenAi))
    );
}

#[test]
fn the_default_is_the_first_with_a_key_else_the_rehearsal() {
    let default = |env| providers(env).choose(None).unwrap();
    assert_eq!(default(&[]), Choice::Rehearsal);
    assert_eq!(default(&[("ANTHROPIC_API_KEY", " ")]), Choice::Rehearsal);
    assert_eq!(default(&[("OPENAI_BASE_URL", "http://localhost:1/v1")]), Choice::Rehearsal);
    let vendor = |env| match default(env) {
        Choice::Live(target) => target.vendor,
        Choice::Rehearsal => panic!("no model for {env:?}"),
    };
    assert_eq!(vendor(ALL_KEYS), Vendor::Anthropic);
    assert_eq!(vendor(&ALL_KEYS[1..]), Vendor::OpenAi);
    assert_eq!(vendor(&ALL_KEYS[2..]), Vendor::Gemini);
}

#[test]
fn without_a_key_it_says_which_to_set() {
    let none = providers(&[]);
    assert_eq!(named(&none, "claude-opus-5-5"), "anthropic/claude-opus-5-5 needs a key: set ANTHROPIC_API_KEY");
    assert_eq!(named(&none, "gemini/x"), "gemini/x needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY");
    assert!(named(&none, "gpt-6").contains("set OPENAI_API_KEY (or OPENAI_BASE_URL"));
}

#[test]
fn addresses_are_taken_with_and_without_their_version() {
    let url = |vendor, given| base_url(vendor, given).unwrap();
    assert_eq!(url(Vendor::Anthropic, None), "https://api.anthropic.com/v1/");
    assert_eq!(url(Vendor::Anthropic, Some("http://127.0.0.1:9")), "http://127.0.0.1:9/v1/");
    assert_eq!(url(Vendor::Anthropic, Some("http://gate/anthropic/v1/")), "http://gate/anthropic/v1/");
    assert_eq!(url(Vendor::OpenAi, Some("http://gate/v1")), "http://gate/v1/");
    assert_eq!(url(Vendor::OpenAi, Some("http://gate/api")), "http://gate/api/");
    assert_eq!(url(Vendor::Gemini, Some("http://gate/")), "http://gate/v1beta/");
    assert_eq!(url(Vendor::Gemini, Some("http://gate/v1beta")), "http://gate/v1beta/");
    for bad in ["localhost:11434", "file:///etc/passwd", "nonsense", "http://gate/v1?key=1"] {
        let error = base_url(Vendor::OpenAi, Some(bad)).unwrap_err().to_string();
        assert_eq!(error, format!("OPENAI_BASE_URL is '{bad}', which is not an http or https address"));
    }
}

#[test]
fn the_address_decides_which_api_openai_speaks_unless_it_is_said() {
    let api = |env: &[(&str, &str)]| match providers(env).choose(Some("openai/x")).unwrap() {
        Choice::Live(target) => target.api,
        Choice::Rehearsal => panic!("no model for {env:?}"),
    };
    let local = ("OPENAI_BASE_URL", "http://localhost:1/v1");
    assert_eq!(api(&[("OPENAI_API_KEY", "k")]), Api::Responses);
    assert_eq!(api(&[local]), Api::Chat);
    assert_eq!(api(&[local, ("OPENAI_API", "responses")]), Api::Responses);
    assert_eq!(api(&[("OPENAI_API_KEY", "k"), ("OPENAI_API", "chat")]), Api::Chat);
    let error = Providers::from_env(|name| (name == "OPENAI_API").then(|| "azure".to_owned())).unwrap_err();
    assert_eq!(error.to_string(), "OPENAI_API is 'azure', but can only be 'responses' or 'chat'");
}

#[test]
fn what_can_be_named_is_what_can_be_asked() {
    let offered = |env: &[(&str, &str)], asked| {
        let providers = providers(env);
        providers.offered(&name(&providers.choose(asked).unwrap()))
    };
    assert_eq!(offered(&[], None), ["rehearsal"]);
    let local = [("OPENAI_BASE_URL", "http://localhost:1/v1")];
    assert_eq!(offered(&local, Some("qwen3")), ["openai/qwen3", "rehearsal"]);
    let gemini = offered(&ALL_KEYS[2..], None);
    assert_eq!((gemini[0].as_str(), gemini.last().unwrap().as_str()), ("gemini/gemini-3.8-flash", "rehearsal"));
    assert_eq!(gemini.len(), catalog::listed(Vendor::Gemini).len() + 1);
}

#[test]
fn no_key_is_ever_shown() {
    let all = providers(ALL_KEYS);
    let target = all.choose(None).unwrap();
    let shown = format!("{all:?} {target:?}");
    assert!(!shown.contains("sk-") && shown.contains("<hidden>"), "{shown}");
}
