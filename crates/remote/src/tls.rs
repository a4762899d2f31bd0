//! TLS over a TCP connection.

use std::io;
use std::sync::Arc;

use multitap_outbound::tls_config;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

pub(crate) async fn over(stream: TcpStream, host: &str) -> io::Result<TlsStream<TcpStream>> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
    let config = tls_config().map_err(io::Error::other)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}
