//! Where a backend is.

use std::net::{IpAddr, Ipv6Addr};

use crate::problem::Finding;

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
    /// To be resolved. Lower-case.
    Name(String),
    /// A literal.
    Ip(IpAddr),
}

impl Address {
    /// Reads `http[s]://HOST[:PORT][/PATH]`; `None` when it is anything else.
    #[must_use]
    pub fn of(url: &str) -> Option<Self> {
        Self::parse(url).ok()
    }

    /// Reads `http[s]://HOST[:PORT][/PATH]`. Never repeats `url` in its findings: it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, Finding> {
        let invalid = |message: &str| Finding::new(message, "write http://HOST:PORT/v1 or https://HOST/v1");
        let (tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return Err(invalid("the scheme must be http or https")),
            None => return Err(invalid("not a URL with a scheme and a host")),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if path.contains(['?', '#']) {
            return Err(invalid("a base URL has no query and no fragment"));
        }
        if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%:@!$&'()*+,;=".contains(&byte)) {
            return Err(invalid("the path holds a character that a URL must escape"));
        }
        if authority.contains('@') {
            return Err(Finding::new(
                "a base URL holds no user name or password",
                "put the key in the environment and write credential: env:NAME",
            ));
        }
        let (host, port) =
            split_port(authority).ok_or_else(|| invalid("the port is not a number from 1 to 65535"))?;
        let host = parse_host(host).ok_or_else(|| invalid("the host is not a name or an address"))?;
        let scheme_port = if tls { 443 } else { 80 };
        let port = port.unwrap_or(scheme_port);
        let shown = match &host {
            Host::Name(name) => name.clone(),
            Host::Ip(IpAddr::V4(ip)) => ip.to_string(),
            Host::Ip(IpAddr::V6(ip)) => format!("[{ip}]"),
        };
        let authority = if port == scheme_port { shown } else { format!("{shown}:{port}") };
        Ok(Self { tls, host, port, authority, path: path.trim_end_matches('/').to_owned() })
    }
}

/// Splits `host:port`, minding the brackets of IPv6. `None` when the port is no port.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))?;
            let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
            Some((host, Some(port)))
        }
        _ => Some((authority, None)),
    }
}

fn parse_host(host: &str) -> Option<Host> {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().ok().map(|ip| Host::Ip(ip.into()));
    }
    if let Ok(ip) = host.parse::<IpAddr>() {
        // A bare IPv6 address cannot be told from a host and a port.
        return ip.is_ipv4().then_some(Host::Ip(ip));
    }
    let label_is_sound = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    // A name whose last label is a number is a mistyped address (`10.0.0.300`), never a name (WHATWG URL, ends-in-a-number).
    let ends_in_number =
        name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    (name.len() <= 253 && !ends_in_number && name.split('.').all(label_is_sound))
        .then(|| Host::Name(host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_base_url_becomes_everything_a_connection_and_a_request_need() {
        let address = Address::parse("https://API.Example.com/openai/v1/").unwrap();
        assert_eq!(address.host, Host::Name("api.example.com".to_owned()));
        assert!(address.tls);
        assert_eq!(
            (address.port, &*address.authority, &*address.path),
            (443, "api.example.com", "/openai/v1")
        );

        let address = Address::parse("http://127.0.0.1:18081").unwrap();
        assert_eq!(address.host, Host::Ip("127.0.0.1".parse().unwrap()));
        assert_eq!((address.tls, &*address.authority, &*address.path), (false, "127.0.0.1:18081", ""));

        let address = Address::parse("http://[::1]:80/v1").unwrap();
        assert_eq!(address.host, Host::Ip("::1".parse().unwrap()));
        assert_eq!((address.port, &*address.authority), (80, "[::1]"));
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for bad in [
            "",
            "api.example.com/v1",
            "ftp://example.com",
            "http://",
            "http:///v1",
            "http://:80",
            "http://host:0",
            "http://host:65536",
            "http://host:http",
            "http://host:",
            "http://ho st/v1",
            "http://::1/v1",
            "http://[::1/v1",
            "http://10.0.0.300/v1",
            "http://host/v1?key=1",
            "http://host/v1#top",
            "http://host?x",
            "http://host/v 1",
            "http://host/版本",
            "http://-host/",
            "http://a..b/",
            "http://host\r\nx: y/",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_refused_without_repeating_it() {
        let finding = Address::parse("https://user:hunter2@example.com/v1").unwrap_err();
        assert!(!format!("{finding:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(url in "(https?://)?.*") {
            let _ = Address::parse(&url);
        }
    }
}
