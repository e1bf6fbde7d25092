//! `AF_NETLINK`, of which `NETLINK_ROUTE` answers questions about interfaces, addresses and routes (netlink(7), rtnetlink(7)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::io::Errno;

use super::address::{Family, is_own, source_for};
use super::interface;

/// `NETLINK_ROUTE`.
pub(crate) const ROUTE: u32 = 0;

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;

/// Types of messages.
const NOOP: u16 = 1;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
/// Types are in groups of four for each subject: new, delete, get, set.
const GET: u16 = 2;

/// Flags: it is part of several; it must be acknowledged; all entries are wanted.
const MULTI: u16 = 2;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;

/// `RT_TABLE_LOCAL`, the table of routes to this machine, and `RT_TABLE_MAIN`.
const TABLE_LOCAL: u8 = 255;
const TABLE_MAIN: u8 = 254;
/// `RT_SCOPE_HOST` and `RT_SCOPE_LINK`.
const SCOPE_HOST: u8 = 254;
const SCOPE_LINK: u8 = 253;

/// A request.
struct Request<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    header: &'a [u8],
    body: &'a [u8],
}

/// Returns the datagrams that answer a datagram of requests; `port` is the number of the socket that asks.
pub(crate) fn answers(mut requests: &[u8], port: u32) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((request, rest)) = next(requests) {
        requests = rest;
        // The kernel ignores its own kinds of messages, and what is no request.
        if request.kind > DONE && request.flags & 1 != 0 {
            all.extend(answer(&request, port));
        } else if request.kind == NOOP && request.flags & ACKNOWLEDGE != 0 {
            all.push(status(&request, port, 0));
        }
    }
    all
}

fn next(bytes: &[u8]) -> Option<(Request<'_>, &[u8])> {
    let half = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    let word = |at: usize| Some(u32::from(half(at)?) | u32::from(half(at + 2)?) << 16);
    let len = word(0)? as usize;
    let header = bytes.get(..HEADER)?;
    let body = bytes.get(HEADER..len)?;
    let request = Request { kind: half(4)?, flags: half(6)?, sequence: word(8)?, header, body };
    Some((request, bytes.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

fn answer(request: &Request<'_>, port: u32) -> Vec<Vec<u8>> {
    if request.kind % 4 != GET {
        return vec![status(request, port, Errno::PERM.raw_os_error())];
    }
    let family = request.body.first().copied().unwrap_or(0);
    let all = request.flags & DUMP != 0;
    let found: Result<Vec<Vec<u8>>, Errno> = match (request.kind - GET, all) {
        (NEW_LINK, true) => Ok(vec![link()]),
        (NEW_LINK, false) => {
            if asks_for_loopback(request.body) {
                Ok(vec![link()])
            } else {
                Err(Errno::NODEV)
            }
        }
        (NEW_ADDRESS, true) => Ok(addresses(family)),
        (NEW_ROUTE, true) => Ok(routes(family)),
        (NEW_ROUTE, false) => route_to(request.body),
        // Neighbours, rules, queues and so on: there are none.
        (_, true) => Ok(Vec::new()),
        (_, false) => Err(Errno::OPNOTSUPP),
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => return vec![status(request, port, error.raw_os_error())],
    };
    let flags = if all { MULTI } else { 0 };
    let kind = request.kind - GET;
    let messages: Vec<u8> = found.iter().flat_map(|body| message(kind, flags, request.sequence, port, body)).collect();
    let mut datagrams = Vec::new();
    if !messages.is_empty() {
        datagrams.push(messages);
    }
    if all {
        datagrams.push(message(DONE, MULTI, request.sequence, port, &[0; 4]));
    } else if request.flags & ACKNOWLEDGE != 0 {
        datagrams.push(status(request, port, 0));
    }
    datagrams
}

/// Returns a message with its header, padded to four bytes.
fn message(kind: u16, flags: u16, sequence: u32, port: u32, body: &[u8]) -> Vec<u8> {
    let len = ((HEADER + body.len()) as u32).to_le_bytes();
    let (kind, flags) = (kind.to_le_bytes(), flags.to_le_bytes());
    let mut message = [&len[..], &kind, &flags, &sequence.to_le_bytes(), &port.to_le_bytes(), body].concat();
    message.resize(message.len().next_multiple_of(4), 0);
    message
}

/// Returns the acknowledgement of a request, with an error number or 0.
fn status(request: &Request<'_>, port: u32, error: i32) -> Vec<u8> {
    let body = [&(-error).to_le_bytes()[..], request.header].concat();
    message(ERROR, 0, request.sequence, port, &body)
}

/// Returns an attribute (`struct rtattr`), padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = (4 + value.len()) as u16;
    let mut attribute = [&len.to_le_bytes()[..], &kind.to_le_bytes(), value].concat();
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}

/// Iterates over the attributes that follow the first `skip` bytes.
fn attributes(body: &[u8], skip: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = body.get(skip..).unwrap_or_default();
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_le_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_le_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Returns `struct ifinfomsg` of the interface with its attributes.
fn link() -> Vec<u8> {
    /// Bytes of `struct rtnl_link_stats` and `struct rtnl_link_stats64`.
    const STATISTICS: (usize, usize) = (96, 192);
    let word = |value: u32| value.to_le_bytes();
    let name = [interface::NAME.as_bytes(), b"\0"].concat();
    let head = [&[0; 2][..], &interface::KIND.to_le_bytes(), &word(interface::INDEX), &word(interface::FLAGS), &[0; 4]];
    let attributes = [
        attribute(3, &name),
        attribute(13, &word(interface::QUEUE)),
        attribute(16, &[0]),
        attribute(17, &[0]),
        attribute(4, &word(interface::MTU)),
        attribute(27, &word(0)),
        attribute(30, &word(0)),
        attribute(31, &word(1)),
        attribute(32, &word(1)),
        attribute(33, &[1]),
        attribute(6, b"noqueue\0"),
        attribute(1, &[0; 6]),
        attribute(2, &[0; 6]),
        attribute(7, &[0; STATISTICS.0]),
        attribute(23, &[0; STATISTICS.1]),
    ];
    [head.concat(), attributes.concat()].concat()
}

/// Returns whether a question about one interface means the only one: by its number, or by its name.
fn asks_for_loopback(body: &[u8]) -> bool {
    let name = attributes(body, 16).find(|(kind, _)| *kind == 3).map(|(_, name)| name);
    match (body.get(4..8), name) {
        (Some([0, 0, 0, 0]) | None, Some(name)) => name.split(|&b| b == 0).next() == Some(interface::NAME.as_bytes()),
        (index, _) => index == Some(&interface::INDEX.to_le_bytes()[..]),
    }
}

/// Returns `AF_INET` or `AF_INET6` for an address, and its bytes.
fn parts(ip: IpAddr) -> (u8, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => (Family::Inet as u8, ip.octets().to_vec()),
        IpAddr::V6(ip) => (Family::Inet6 as u8, ip.octets().to_vec()),
    }
}

/// Returns `struct ifaddrmsg` of each address of a family, 0 for both, with its attributes.
fn addresses(family: u8) -> Vec<Vec<u8>> {
    /// `IFA_F_PERMANENT`.
    const PERMANENT: u8 = 0x80;
    let address = |(ip, prefix): (IpAddr, u8)| {
        let (number, bytes) = parts(ip);
        if family != 0 && family != number {
            return None;
        }
        let head = [&[number, prefix, PERMANENT, SCOPE_HOST][..], &interface::INDEX.to_le_bytes()].concat();
        let mut message = [head, attribute(1, &bytes)].concat();
        if ip.is_ipv4() {
            message.extend(attribute(2, &bytes));
            message.extend(attribute(3, &[interface::NAME.as_bytes(), b"\0"].concat()));
        }
        // Valid for ever.
        message.extend(attribute(6, &[[0xff; 8], [0; 8]].concat()));
        message.extend(attribute(8, &u32::from(PERMANENT).to_le_bytes()));
        Some(message)
    };
    let all = [(IpAddr::from(Ipv4Addr::LOCALHOST), 8), (IpAddr::from(Ipv6Addr::LOCALHOST), 128)];
    all.into_iter().filter_map(address).collect()
}

/// A route: destination, bits of its prefix, table, scope, type (`RTN_…`).
type Route = (IpAddr, u8, u8, u8, u8);

/// The routes of the interface.
fn all_routes() -> [Route; 5] {
    const UNICAST: u8 = 1;
    const LOCAL: u8 = 2;
    const BROADCAST: u8 = 3;
    [
        (Ipv4Addr::new(127, 0, 0, 0).into(), 8, TABLE_LOCAL, SCOPE_HOST, LOCAL),
        (Ipv4Addr::LOCALHOST.into(), 32, TABLE_LOCAL, SCOPE_HOST, LOCAL),
        (Ipv4Addr::new(127, 255, 255, 255).into(), 32, TABLE_LOCAL, SCOPE_LINK, BROADCAST),
        (Ipv6Addr::LOCALHOST.into(), 128, TABLE_MAIN, 0, UNICAST),
        (Ipv6Addr::LOCALHOST.into(), 128, TABLE_LOCAL, 0, LOCAL),
    ]
}

/// Returns `struct rtmsg` of a route with its attributes.
fn route(&(to, prefix, table, scope, kind): &Route) -> Vec<u8> {
    /// `RTPROT_KERNEL`.
    const KERNEL: u8 = 2;
    let (family, bytes) = parts(to);
    let mut message = vec![family, prefix, 0, 0, table, KERNEL, scope, kind, 0, 0, 0, 0];
    message.extend(attribute(15, &u32::from(table).to_le_bytes()));
    message.extend(attribute(1, &bytes));
    if to.is_ipv4() {
        message.extend(attribute(7, &parts(source_for(to)).1));
    }
    message.extend(attribute(4, &interface::INDEX.to_le_bytes()));
    message
}

fn routes(family: u8) -> Vec<Vec<u8>> {
    let wanted = |route: &&Route| family == 0 || family == parts(route.0).0;
    all_routes().iter().filter(wanted).map(route).collect()
}

/// Returns the route to the destination in a question.
fn route_to(body: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
    let (_, to) = attributes(body, 12).find(|(kind, _)| *kind == 1).ok_or(Errno::INVAL)?;
    let to = match (<[u8; 4]>::try_from(to), <[u8; 16]>::try_from(to)) {
        (Ok(v4), _) => IpAddr::from(v4),
        (_, Ok(v6)) => IpAddr::from(v6),
        _ => return Err(Errno::INVAL),
    };
    if !is_own(to) {
        return Err(Errno::NETUNREACH);
    }
    let bits = if to.is_ipv4() { 32 } else { 128 };
    Ok(vec![route(&(to, bits, TABLE_LOCAL, 0, 2))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(kind: u16, flags: u16, body: &[u8]) -> Vec<Vec<u8>> {
        answers(&message(kind, flags, 5, 0, body), 77)
    }

    fn kind(message: &[u8]) -> u16 {
        u16::from_le_bytes([message[4], message[5]])
    }

    #[test]
    fn dumps_end_with_a_message_that_says_so_and_carry_the_question_s_number() {
        for (subject, count) in [(NEW_LINK, 1), (NEW_ADDRESS, 2), (NEW_ROUTE, 5)] {
            let answer = ask(subject + GET, 1 | DUMP, &[0; 16]);
            assert_eq!(answer.len(), 2);
            let (mut rest, mut found) = (&answer[0][..], 0);
            while let Some((message, more)) = next(rest) {
                assert_eq!((message.kind, message.sequence, message.flags), (subject, 5, MULTI));
                (rest, found) = (more, found + 1);
            }
            assert_eq!((found, kind(&answer[1])), (count, DONE));
        }
        assert_eq!(ask(30, 1 | DUMP, &[0; 4]).len(), 1, "no neighbours");
    }

    #[test]
    fn changes_are_refused_and_interfaces_that_do_not_exist_are_reported() {
        let error = |answer: &[Vec<u8>]| -i32::from_le_bytes(answer[0][16..20].try_into().expect("a number"));
        assert_eq!(error(&ask(NEW_LINK, 1, &[0; 16])), Errno::PERM.raw_os_error());
        let index = |n: u8| [&[0; 4][..], &[n, 0, 0, 0], &[0; 8]].concat();
        assert_eq!(error(&ask(NEW_LINK + GET, 1, &index(2))), Errno::NODEV.raw_os_error());
        assert_eq!(kind(&ask(NEW_LINK + GET, 1, &index(1))[0]), NEW_LINK);
        let to = |host: [u8; 4]| [vec![0; 12], attribute(1, &host)].concat();
        assert_eq!(error(&ask(NEW_ROUTE + GET, 1, &to([10, 0, 0, 1]))), Errno::NETUNREACH.raw_os_error());
        assert_eq!(kind(&ask(NEW_ROUTE + GET, 1, &to([127, 3, 0, 1]))[0]), NEW_ROUTE);
    }

    #[test]
    fn damaged_requests_are_ignored() {
        for bytes in [&b""[..], &[0; 15], &[255; 16], &[0; 16], &[3, 0, 0, 0, 18, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(answers(bytes, 1).is_empty());
        }
        assert_eq!(attributes(&[0, 0, 0, 0, 0, 0, 0, 0], 0).count(), 0);
    }
}
