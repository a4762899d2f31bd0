//! How we speak TLS: rustls with ring, which a C compiler is enough to build, and the certificates the system trusts.
//!
//! One place, so that no part of the agent brings a second implementation along.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;

/// What every HTTPS client of ours is built with.
pub(crate) fn config() -> Result<ClientConfig, rustls::Error> {
    Ok(builder()?.with_platform_verifier()?.with_no_client_auth())
}

/// For plain HTTP: no certificate is read, and none is trusted.
pub(crate) fn trusts_nobody() -> Result<ClientConfig, rustls::Error> {
    Ok(builder()?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}
