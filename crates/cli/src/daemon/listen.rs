//! Where `--listen` says that a daemon is to be found.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An address and a port. The only name is `localhost`, which is not looked up: a file or a
/// resolver with another address for it would open the daemon to others.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
    let of_localhost = |(host, port): (&str, &str)| {
        // A number may have a sign, a port has none.
        let is_it = host.eq_ignore_ascii_case("localhost") && !port.starts_with('+');
        let port = port.parse().ok()?;
        is_it.then_some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    };
    let address = text.parse().ok();
    address.or_else(|| text.rsplit_once(':').and_then(of_localhost)).ok_or_else(|| ACCEPTED.into())
}

const ACCEPTED: &str =
    "expected IP:PORT, like 127.0.0.1:8722 or [::1]:8722, or localhost:PORT (127.0.0.1)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_an_address_or_localhost() {
        for (text, want) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:0", "[::1]:0"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("localhost:8722", "127.0.0.1:8722"),
            ("LocalHost:0", "127.0.0.1:0"),
        ] {
            assert_eq!(parse(text), Ok(want.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn everything_else_is_told_what_it_takes() {
        for text in [
            "",
            "8722",
            ":8722",
            "localhost",
            "localhost:",
            "localhost:65536",
            "localhost:+80",
            "localhost:-0",
            "localhost.:80",
            "a.localhost:80",
            "localhost:80:80",
            "example.com:80",
            "http://localhost:80",
            "127.0.0.1",
            "::1:80",
        ] {
            assert_eq!(parse(text), Err(ACCEPTED.to_owned()), "{text}");
        }
    }
}
