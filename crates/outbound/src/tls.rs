//! TLS: rustls with ring, which needs only a C compiler to build, and the certificates that the system trusts.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::BuildError;

/// TLS that trusts the certificates the system trusts.
pub fn tls_config() -> Result<ClientConfig, BuildError> {
    Ok(builder()?.with_platform_verifier()?.with_no_client_auth())
}

/// For plain HTTP: reads no certificates, which takes time, and trusts none.
pub(crate) fn trust_nobody() -> Result<ClientConfig, BuildError> {
    Ok(builder()?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}
