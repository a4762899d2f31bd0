//! Versions in the URIs of extensions (R000-10).

use multitap_a2a::devtool::URI;
use multitap_a2a::extension::{Version, is_same, judge};

fn uri(version: &str) -> String {
    URI.replace("/v0/", &format!("/{version}/"))
}

#[test]
fn the_version_is_found_in_the_uri() {
    let check = |uri: &str, version: Option<&str>| {
        assert_eq!(Version::of_uri(uri).map(|version| version.to_string()).as_deref(), version, "{uri}");
    };
    check(URI, Some("0.x"));
    check("https://example.org/x/v0.3/spec.md", Some("0.3.x"));
    check("https://example.org/x/v0.3.1/spec.md", Some("0.3.1"));
    check("https://example.org/x/v1", Some("1.x"));
    check("https://example.org/v2/x/v1.2.3-rc.1+build.5", Some("1.2.3-rc.1"));
    check("https://example.org/x/spec.md", None);
    check("https://example.org/x/v01/", None);
    check("https://example.org/x/v1.2.3.4/", None);
    check("https://example.org/x/v1-rc/", None);
    check("https://example.org/video/", None);
    check("", None);
    check("v", None);
    check("/v/v+/v-/v.", None);
}

#[test]
fn versions_are_judged_by_semver() {
    let check = |theirs: &str, ours: &str, expected: bool| {
        assert_eq!(judge(&uri(theirs), &uri(ours)).is_ok(), expected, "theirs {theirs}, ours {ours}");
    };
    check("v0", "v0", true);
    check("v0.3.1", "v0", true);
    check("v0", "v0.3.1", true);
    check("v0.3.1", "v0.3.0", true);
    check("v0.4.0", "v0.3.0", false);
    check("v0.2", "v0.3.0", false);
    check("v1", "v0", false);
    check("v1.2", "v1.1.9", true);
    check("v1.0.9", "v1.1", false);
    check("v2.0.0", "v1", false);
    check("v1.0.0-rc.1", "v1.0.0", false);
    check("v1.0.0-rc.1", "v1.0.0-rc.1", true);
}

#[test]
fn a_refusal_names_both_versions() {
    let sentence = |theirs: &str| judge(theirs, URI).unwrap_err().to_string();
    assert_eq!(
        sentence(&uri("v1")),
        "the agent speaks version 1.x of the extension developer-profile, this client speaks 0.x"
    );
    let without = URI.replace("/v0/", "/");
    assert_eq!(
        sentence(&without),
        format!("the agent gives no version of the extension developer-profile (in {without}), this client speaks 0.x")
    );
    let other = "https://example.org/other/v0/spec.md";
    assert_eq!(sentence(other), format!("the agent offers {other}, not {URI}"));
}

#[test]
fn an_extension_is_the_same_in_any_version() {
    assert!(is_same(&uri("v7.1.0"), URI));
    assert!(is_same(&URI.replace("/v0/", "/"), URI));
    assert!(!is_same("https://example.org/v0/spec.md", URI));
    assert!(is_same("urn:x", "urn:x"));
    assert!(!is_same("urn:y", "urn:x"));
}
