//! Where a backend is.

use std::net::IpAddr;

/// The parsed base URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// `https`?
    pub tls: bool,
    /// As a name or a literal address, without brackets.
    pub host: Host,
    /// Given or the scheme's.
    pub port: u16,
    /// The `Host` header's value: with the port unless it is the scheme's.
    pub authority: String,
    /// Prefix of every path: empty or `/v1`, never with a slash at the end.
    pub path: String,
}

/// A host name or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// To be resolved.
    Name(String),
    /// A literal.
    Ip(IpAddr),
}
