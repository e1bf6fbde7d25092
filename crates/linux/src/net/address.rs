//! Addresses of sockets, as programs write them and as the simulator compares them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Address families (`AF_…`), by their numbers on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Family {
    /// `AF_UNIX`.
    Unix = 1,
    /// `AF_INET`.
    Inet = 2,
    /// `AF_INET6`.
    Inet6 = 10,
    /// `AF_NETLINK`.
    Netlink = 16,
}

/// `AF_UNSPEC`: no address.
const UNSPECIFIED: u16 = 0;

/// Maximum length of the name of a local socket in bytes (unix(7)).
const NAME_MAX: usize = 108;

impl Family {
    /// Returns the family with this number.
    pub(crate) fn of(number: u64) -> Option<Family> {
        [Family::Unix, Family::Inet, Family::Inet6, Family::Netlink].into_iter().find(|&family| family as u64 == number)
    }

    /// Returns whether its addresses have ports.
    pub(crate) fn has_ports(self) -> bool {
        matches!(self, Family::Inet | Family::Inet6)
    }

    /// Returns the address of a socket that has none.
    pub(crate) fn unspecified(self) -> Address {
        match self {
            Family::Unix => Address::Unnamed,
            Family::Inet => Address::Inet(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
            Family::Inet6 => Address::Inet(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))),
            Family::Netlink => Address::Netlink { port: 0, groups: 0 },
        }
    }
}

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Address {
    /// A local socket without a name.
    Unnamed,
    /// A name that is no file's.
    Abstract(Vec<u8>),
    /// The name of a file, as the program gave it.
    Path(Vec<u8>),
    /// An internet address. Those of IPv4 never have the form of IPv6 addresses here.
    Inet(SocketAddr),
    /// An address of `AF_NETLINK`.
    Netlink {
        /// Usually the number of a process; 0: the kernel.
        port: u32,
        /// Multicast groups.
        groups: u32,
    },
}

impl Address {
    /// Reads the address that a program gave to a socket of this family. `None`: `AF_UNSPEC`.
    ///
    /// # Errors
    /// `EINVAL` when it is too short or too long; `EAFNOSUPPORT` when it has another family.
    pub(crate) fn parse(family: Family, bytes: &[u8]) -> Result<Option<Address>, Errno> {
        let number = u16::from_le_bytes(bytes.get(..2).and_then(|b| b.try_into().ok()).ok_or(Errno::INVAL)?);
        if number == UNSPECIFIED && family != Family::Netlink {
            return Ok(None);
        }
        if number != family as u16 {
            return Err(if family == Family::Unix { Errno::INVAL } else { Errno::AFNOSUPPORT });
        }
        let rest = &bytes[2..];
        Ok(Some(match family {
            Family::Unix => unix(rest)?,
            Family::Inet => {
                let host: [u8; 4] = rest.get(2..6).and_then(|b| b.try_into().ok()).ok_or(Errno::INVAL)?;
                if rest.len() < 14 {
                    return Err(Errno::INVAL);
                }
                Address::Inet(SocketAddr::new(host.into(), u16::from_be_bytes([rest[0], rest[1]])))
            }
            Family::Inet6 => {
                let host: [u8; 16] = rest.get(6..22).and_then(|b| b.try_into().ok()).ok_or(Errno::INVAL)?;
                let host = IpAddr::from(host).to_canonical();
                Address::Inet(SocketAddr::new(host, u16::from_be_bytes([rest[0], rest[1]])))
            }
            Family::Netlink => {
                let word = |at: usize| rest.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
                Address::Netlink { port: word(2).ok_or(Errno::INVAL)?, groups: word(6).ok_or(Errno::INVAL)? }
            }
        }))
    }

    /// Returns its bytes for a program whose socket is of this family (`struct sockaddr_un`, `_in`, `_in6`, `_nl`).
    pub(crate) fn bytes(&self, family: Family) -> Vec<u8> {
        let number = (family as u16).to_le_bytes();
        match self {
            Address::Unnamed => number.to_vec(),
            Address::Abstract(name) => [&number[..], b"\0", name].concat(),
            Address::Path(name) => [&number[..], name, b"\0"].concat(),
            Address::Inet(place) => match (family, place.ip()) {
                (Family::Inet, IpAddr::V4(host)) => {
                    [&number[..], &place.port().to_be_bytes(), &host.octets(), &[0; 8]].concat()
                }
                (_, host) => {
                    let host = match host {
                        IpAddr::V4(host) => host.to_ipv6_mapped(),
                        IpAddr::V6(host) => host,
                    };
                    [&number[..], &place.port().to_be_bytes(), &[0; 4], &host.octets(), &[0; 4]].concat()
                }
            },
            Address::Netlink { port, groups } => {
                [&number[..], &[0; 2], &port.to_le_bytes(), &groups.to_le_bytes()].concat()
            }
        }
    }

    /// Returns the internet address that it is.
    pub(crate) fn inet(&self) -> Option<SocketAddr> {
        match self {
            Address::Inet(place) => Some(*place),
            _ => None,
        }
    }
}

/// Reads the name of a local socket: a path ends at its first zero byte, an abstract name has every byte (unix(7)).
fn unix(name: &[u8]) -> Result<Address, Errno> {
    if name.len() > NAME_MAX {
        return Err(Errno::INVAL);
    }
    Ok(match name {
        [] => Address::Unnamed,
        [0, rest @ ..] => Address::Abstract(rest.to_vec()),
        _ => Address::Path(name.split(|&b| b == 0).next().unwrap_or_default().to_vec()),
    })
}

/// Returns whether an address belongs to the only interface.
pub(crate) fn is_own(host: IpAddr) -> bool {
    host.is_loopback()
}

/// Returns the address from which the interface sends to `to` (Linux `ip route get`): the first of its family.
pub(crate) fn source_for(to: IpAddr) -> IpAddr {
    match to {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// Returns where a packet to `to` goes: one to no particular address goes to this machine.
///
/// # Errors
/// `ENETUNREACH` for every address outside it.
pub(crate) fn destination(to: SocketAddr) -> Result<SocketAddr, Errno> {
    let host = if to.ip().is_unspecified() { source_for(to.ip()) } else { to.ip() };
    if is_own(host) { Ok(SocketAddr::new(host, to.port())) } else { Err(Errno::NETUNREACH) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let cases = [
            (Family::Unix, Address::Unnamed),
            (Family::Unix, Address::Abstract(b"a\0b\xff".to_vec())),
            (Family::Unix, Address::Path(b"/tmp/x".to_vec())),
            (Family::Inet, Address::Inet(SocketAddr::from(([127, 0, 0, 1], 80)))),
            (Family::Inet6, Address::Inet(SocketAddr::from((Ipv6Addr::LOCALHOST, 443)))),
            (Family::Inet6, Address::Inet(SocketAddr::from(([127, 0, 0, 2], 1)))),
            (Family::Netlink, Address::Netlink { port: 7, groups: 1 }),
        ];
        for (family, address) in cases {
            assert_eq!(Address::parse(family, &address.bytes(family)), Ok(Some(address)));
        }
    }

    #[test]
    fn addresses_of_another_family_or_length_are_refused() {
        let inet = Address::Inet(SocketAddr::from(([127, 0, 0, 1], 80))).bytes(Family::Inet);
        assert_eq!(Address::parse(Family::Inet, &inet[..15]), Err(Errno::INVAL));
        assert_eq!(Address::parse(Family::Inet6, &inet), Err(Errno::AFNOSUPPORT));
        assert_eq!(Address::parse(Family::Unix, &inet), Err(Errno::INVAL));
        assert_eq!(Address::parse(Family::Inet, &[0; 16]), Ok(None));
        assert_eq!(Address::parse(Family::Inet, &[]), Err(Errno::INVAL));
        assert_eq!(Address::parse(Family::Unix, &[&[1, 0][..], &[b'x'; 109]].concat()), Err(Errno::INVAL));
    }
}
