//! Options of sockets (socket(7), ip(7), ipv6(7), tcp(7), netlink(7)): those that programs set, with Linux's initial values. A
//! loopback network has no use for most of them; they are kept, so that a program reads what it has set.

use std::collections::BTreeMap;

use rustix::io::Errno;
use rustix::net::SocketType;
use serde::{Deserialize, Serialize};

use super::address::Family;
use super::socket::Socket;

/// `SOL_SOCKET`.
pub(crate) const SOL_SOCKET: u32 = 1;
/// `IPPROTO_IP`.
const IPPROTO_IP: u32 = 0;
/// `IPPROTO_TCP`.
pub(crate) const IPPROTO_TCP: u32 = 6;
/// `IPPROTO_UDP`.
pub(crate) const IPPROTO_UDP: u32 = 17;
/// `IPPROTO_IPV6`.
pub(crate) const IPPROTO_IPV6: u32 = 41;
/// `SOL_NETLINK`.
const SOL_NETLINK: u32 = 270;

/// `SO_REUSEADDR`.
pub(crate) const SO_REUSEADDR: u32 = 2;
/// `SO_SNDBUF`.
pub(crate) const SO_SNDBUF: u32 = 7;
/// `SO_RCVBUF`.
pub(crate) const SO_RCVBUF: u32 = 8;
/// `SO_LINGER`.
const SO_LINGER: u32 = 13;
/// `SO_REUSEPORT`.
pub(crate) const SO_REUSEPORT: u32 = 15;
/// `SO_PASSCRED`.
pub(crate) const SO_PASSCRED: u32 = 16;
/// `SO_RCVTIMEO`, as 64-bit programs have it.
pub(crate) const SO_RCVTIMEO: u32 = 20;
/// `SO_SNDTIMEO`.
pub(crate) const SO_SNDTIMEO: u32 = 21;
/// `IPV6_V6ONLY`.
pub(crate) const IPV6_V6ONLY: u32 = 26;
/// `TCP_CONGESTION`.
const TCP_CONGESTION: u32 = 13;

/// The values that an option may have.
#[derive(Clone, Copy)]
enum Form {
    /// A whole number, at least and at most this.
    Number(i32, i32),
    /// 0 or 1: every other number is 1.
    Switch,
    /// A structure of this many bytes.
    Bytes(usize),
    /// A name of at most this many bytes.
    Name(usize),
}

/// An option: level, name, form, initial value of a number.
type Known = (u32, u32, Form, i32);

const ANY: Form = Form::Number(i32::MIN, i32::MAX);
const SWITCH: Form = Form::Switch;

/// Options of every socket.
const GENERAL: &[Known] = &[
    (SOL_SOCKET, 1, SWITCH, 0), // SO_DEBUG
    (SOL_SOCKET, SO_REUSEADDR, SWITCH, 0),
    (SOL_SOCKET, 5, SWITCH, 0), // SO_DONTROUTE
    (SOL_SOCKET, 6, SWITCH, 0), // SO_BROADCAST
    (SOL_SOCKET, SO_SNDBUF, ANY, 212_992),
    (SOL_SOCKET, SO_RCVBUF, ANY, 212_992),
    (SOL_SOCKET, 9, SWITCH, 0),              // SO_KEEPALIVE
    (SOL_SOCKET, 10, SWITCH, 0),             // SO_OOBINLINE
    (SOL_SOCKET, 11, SWITCH, 0),             // SO_NO_CHECK
    (SOL_SOCKET, 12, Form::Number(0, 6), 0), // SO_PRIORITY
    (SOL_SOCKET, SO_LINGER, Form::Bytes(8), 0),
    (SOL_SOCKET, SO_REUSEPORT, SWITCH, 0),
    (SOL_SOCKET, SO_PASSCRED, SWITCH, 0),
    (SOL_SOCKET, 18, Form::Number(1, i32::MAX), 1), // SO_RCVLOWAT
    (SOL_SOCKET, SO_RCVTIMEO, Form::Bytes(16), 0),
    (SOL_SOCKET, SO_SNDTIMEO, Form::Bytes(16), 0),
    (SOL_SOCKET, 46, Form::Number(0, i32::MAX), 0), // SO_BUSY_POLL
    (SOL_SOCKET, 49, ANY, -1),                      // SO_INCOMING_CPU
];

/// Options of sockets of IPv4, which those of IPv6 have, too.
const IPV4: &[Known] = &[
    (IPPROTO_IP, 1, Form::Number(0, 255), 0),   // IP_TOS
    (IPPROTO_IP, 2, Form::Number(-1, 255), 64), // IP_TTL
    (IPPROTO_IP, 10, Form::Number(0, 5), 1),    // IP_MTU_DISCOVER
    (IPPROTO_IP, 11, SWITCH, 0),                // IP_RECVERR
    (IPPROTO_IP, 15, SWITCH, 0),                // IP_FREEBIND
    (IPPROTO_IP, 24, SWITCH, 0),                // IP_BIND_ADDRESS_NO_PORT
    (IPPROTO_IP, 33, Form::Number(-1, 255), 1), // IP_MULTICAST_TTL
    (IPPROTO_IP, 34, SWITCH, 1),                // IP_MULTICAST_LOOP
];

/// Options of sockets of IPv6.
const IPV6: &[Known] = &[
    (IPPROTO_IPV6, 16, Form::Number(-1, 255), 64), // IPV6_UNICAST_HOPS
    (IPPROTO_IPV6, 18, Form::Number(-1, 255), 1),  // IPV6_MULTICAST_HOPS
    (IPPROTO_IPV6, 19, SWITCH, 1),                 // IPV6_MULTICAST_LOOP
    (IPPROTO_IPV6, 23, Form::Number(0, 5), 1),     // IPV6_MTU_DISCOVER
    (IPPROTO_IPV6, 25, SWITCH, 0),                 // IPV6_RECVERR
    (IPPROTO_IPV6, IPV6_V6ONLY, SWITCH, 0),
    (IPPROTO_IPV6, 67, Form::Number(-1, 255), 0), // IPV6_TCLASS
];

/// Options of TCP.
const TCP: &[Known] = &[
    (IPPROTO_TCP, 1, SWITCH, 0),                          // TCP_NODELAY
    (IPPROTO_TCP, 2, Form::Number(88, 32_767), 32_768),   // TCP_MAXSEG
    (IPPROTO_TCP, 3, SWITCH, 0),                          // TCP_CORK
    (IPPROTO_TCP, 4, Form::Number(1, 32_767), 7200),      // TCP_KEEPIDLE
    (IPPROTO_TCP, 5, Form::Number(1, 32_767), 75),        // TCP_KEEPINTVL
    (IPPROTO_TCP, 6, Form::Number(1, 127), 9),            // TCP_KEEPCNT
    (IPPROTO_TCP, 7, Form::Number(1, 127), 6),            // TCP_SYNCNT
    (IPPROTO_TCP, 8, ANY, 60),                            // TCP_LINGER2
    (IPPROTO_TCP, 9, ANY, 0),                             // TCP_DEFER_ACCEPT
    (IPPROTO_TCP, 10, Form::Number(0, i32::MAX), 65_536), // TCP_WINDOW_CLAMP
    (IPPROTO_TCP, 12, SWITCH, 1),                         // TCP_QUICKACK
    (IPPROTO_TCP, TCP_CONGESTION, Form::Name(15), 0),
    (IPPROTO_TCP, 18, Form::Number(0, i32::MAX), 0), // TCP_USER_TIMEOUT
    (IPPROTO_TCP, 23, Form::Number(0, i32::MAX), 0), // TCP_FASTOPEN
    (IPPROTO_TCP, 25, ANY, -1),                      // TCP_NOTSENT_LOWAT
    (IPPROTO_TCP, 30, SWITCH, 0),                    // TCP_FASTOPEN_CONNECT
];

/// Options of UDP.
const UDP: &[Known] = &[(IPPROTO_UDP, 1, SWITCH, 0)]; // UDP_CORK

/// Options of `AF_NETLINK`.
const NETLINK: &[Known] = &[
    (SOL_NETLINK, 1, ANY, 0),     // NETLINK_ADD_MEMBERSHIP
    (SOL_NETLINK, 2, ANY, 0),     // NETLINK_DROP_MEMBERSHIP
    (SOL_NETLINK, 4, SWITCH, 0),  // NETLINK_BROADCAST_ERROR
    (SOL_NETLINK, 5, SWITCH, 0),  // NETLINK_NO_ENOBUFS
    (SOL_NETLINK, 10, SWITCH, 0), // NETLINK_CAP_ACK
    (SOL_NETLINK, 11, SWITCH, 0), // NETLINK_EXT_ACK
    (SOL_NETLINK, 12, SWITCH, 0), // NETLINK_GET_STRICT_CHK
];

/// Returns the tables of options that a socket has.
fn tables(socket: &Socket) -> Vec<&'static [Known]> {
    let mut tables = vec![GENERAL];
    if socket.family.has_ports() {
        tables.push(IPV4);
        tables.push(if socket.is_datagram() { UDP } else { TCP });
    }
    match socket.family {
        Family::Inet6 => tables.push(IPV6),
        Family::Netlink => tables.push(NETLINK),
        Family::Unix | Family::Inet => {}
    }
    tables
}

fn find(socket: &Socket, level: u32, name: u32) -> Option<Known> {
    tables(socket).into_iter().flatten().find(|known| (known.0, known.1) == (level, name)).copied()
}

/// The options that a program has set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Options(BTreeMap<(u32, u32), Vec<u8>>);

impl Options {
    /// Returns whether a switch is on.
    pub(crate) fn is_set(&self, level: u32, name: u32) -> bool {
        self.0.get(&(level, name)).is_some_and(|value| value.iter().any(|&b| b != 0))
    }

    /// Keeps a number, whatever the program may set.
    pub(crate) fn keep(&mut self, level: u32, name: u32, value: i32) {
        self.0.insert((level, name), value.to_le_bytes().to_vec());
    }

    /// Returns a time limit in ns; `None`: forever.
    pub(crate) fn time_limit_ns(&self, name: u32) -> Option<u64> {
        let value = self.0.get(&(SOL_SOCKET, name))?;
        let word = |at: usize| value.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        let ns = word(0)?.saturating_mul(1_000_000_000).saturating_add(word(8)?.saturating_mul(1000));
        (ns > 0).then_some(ns)
    }
}

/// Sets an option of a socket. `None`: Linux has none with this name for such sockets, or the simulator does not know it.
///
/// # Errors
/// `EINVAL` when the value is too short or too large, `EDOM` for an impossible time.
pub(crate) fn set(socket: &Socket, level: u32, name: u32, value: &[u8]) -> Option<Result<(), Errno>> {
    let (_, _, form, _) = find(socket, level, name)?;
    let number = value.get(..4).and_then(|b| b.try_into().ok()).map(i32::from_le_bytes);
    let kept = match (form, number) {
        (Form::Switch, Some(n)) => i32::from(n != 0).to_le_bytes().to_vec(),
        (Form::Number(least, most), Some(n)) if (least..=most).contains(&n) => n.to_le_bytes().to_vec(),
        (Form::Bytes(len), _) if value.len() >= len => value[..len].to_vec(),
        (Form::Name(most), _) => value[..value.len().min(most)].to_vec(),
        _ => return Some(Err(Errno::INVAL)),
    };
    let is_time = level == SOL_SOCKET && matches!(name, SO_RCVTIMEO | SO_SNDTIMEO);
    if is_time && !u64::from_le_bytes(kept[8..16].try_into().unwrap_or_default()).lt(&1_000_000) {
        return Some(Err(Errno::DOM));
    }
    socket.state.borrow_mut().options.0.insert((level, name), kept);
    Some(Ok(()))
}

/// Returns the value of an option of a socket. `None`: there is none with this name.
pub(crate) fn get(socket: &Socket, level: u32, name: u32) -> Option<Vec<u8>> {
    let (_, _, form, initial) = find(socket, level, name)?;
    if let Some(value) = socket.state.borrow().options.0.get(&(level, name)) {
        return Some(value.clone());
    }
    Some(match form {
        Form::Bytes(len) => vec![0; len],
        Form::Name(_) => b"cubic\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        Form::Number(..) | Form::Switch => initial.to_le_bytes().to_vec(),
    })
}

/// States of a TCP connection (`TCP_…` of Linux `include/net/tcp_states.h`).
pub(crate) fn tcp_state(socket: &Socket) -> u8 {
    use super::socket::Role;
    match socket.state.borrow().role {
        Role::Connected | Role::Pair => 1,
        Role::Listening(_) => 10,
        Role::Idle => 7,
    }
}

/// Returns `struct tcp_info` of a socket (`TCP_INFO`): its state, and the largest segments of the loopback interface.
pub(crate) fn tcp_info(socket: &Socket) -> Option<Vec<u8>> {
    /// Bytes of the structure up to `tcpi_sndbuf_limited` (Linux 5.14).
    const BYTES: usize = 232;
    if !socket.family.has_ports() || socket.kind != SocketType::STREAM {
        return None;
    }
    let mut info = vec![0; BYTES];
    info[0] = tcp_state(socket);
    // Retransmission time-out and acknowledgement time-out in µs, then the largest segments of both directions.
    for (at, value) in [(8, 200_000_u32), (12, 40_000), (16, 65_483), (20, 65_483)] {
        info[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    Some(info)
}

#[cfg(test)]
mod tests {
    use super::super::socket::Credentials;
    use super::*;

    fn socket(family: Family, kind: SocketType) -> Socket {
        Socket::new(family, kind, 0, Credentials::UNKNOWN)
    }

    #[test]
    fn options_have_linuxs_initial_values_and_keep_what_is_set() {
        let tcp = socket(Family::Inet, SocketType::STREAM);
        assert_eq!(get(&tcp, IPPROTO_TCP, 4), Some(7200_i32.to_le_bytes().to_vec()));
        assert_eq!(set(&tcp, IPPROTO_TCP, 4, &60_i32.to_le_bytes()), Some(Ok(())));
        assert_eq!(get(&tcp, IPPROTO_TCP, 4), Some(60_i32.to_le_bytes().to_vec()));
        assert_eq!(set(&tcp, SOL_SOCKET, SO_REUSEADDR, &7_i32.to_le_bytes()), Some(Ok(())));
        assert_eq!(get(&tcp, SOL_SOCKET, SO_REUSEADDR), Some(vec![1, 0, 0, 0]));
    }

    #[test]
    fn impossible_values_and_options_of_other_protocols_are_refused() {
        let udp = socket(Family::Inet, SocketType::DGRAM);
        assert_eq!(set(&udp, IPPROTO_TCP, 1, &[1, 0, 0, 0]), None);
        assert_eq!(set(&udp, IPPROTO_IPV6, IPV6_V6ONLY, &[1, 0, 0, 0]), None);
        assert_eq!(set(&udp, SOL_SOCKET, SO_REUSEADDR, &[1, 0]), Some(Err(Errno::INVAL)));
        assert_eq!(set(&udp, IPPROTO_IP, 1, &256_i32.to_le_bytes()), Some(Err(Errno::INVAL)));
        let time = [1_u64.to_le_bytes(), 1_000_000_u64.to_le_bytes()].concat();
        assert_eq!(set(&udp, SOL_SOCKET, SO_RCVTIMEO, &time), Some(Err(Errno::DOM)));
    }

    #[test]
    fn a_time_limit_of_zero_is_none() {
        let udp = socket(Family::Inet, SocketType::DGRAM);
        let limit = |time: [u64; 2]| {
            let bytes = time.map(u64::to_le_bytes).concat();
            assert_eq!(set(&udp, SOL_SOCKET, SO_RCVTIMEO, &bytes), Some(Ok(())));
            udp.state.borrow().options.time_limit_ns(SO_RCVTIMEO)
        };
        assert_eq!((limit([0, 0]), limit([2, 5]), limit([u64::MAX, 0])), (None, Some(2_000_005_000), Some(u64::MAX)));
    }
}
