//! `/proc/net` and `/sys/class/net` of the run's own network, and the names of the machine in `/etc/hosts`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use rustix::net::SocketType;

use super::tree::{Entry, Make};
use crate::abi::uname;
use crate::kernel::Kernel;
use crate::net::address::{Address, Family};
use crate::net::interface;
use crate::net::options::tcp_state;
use crate::net::socket::{Role, Socket};

/// The file with the addresses of host names (hosts(5)).
pub(crate) const HOSTS: &str = "/etc/hosts";

/// The files in `/proc/net`, in the table's folder for any process.
const FILES: &[(&str, Make)] = &[
    ("arp", |_, _| b"IP address       HW type     Flags       HW address            Mask     Device\n".to_vec()),
    ("dev", |_, _| devices()),
    ("fib_trie", |_, _| TRIE.to_vec()),
    ("if_inet6", |_, _| b"00000000000000000000000000000001 01 80 10 80       lo\n".to_vec()),
    ("ipv6_route", |_, _| Vec::new()),
    ("route", |_, _| {
        format!("{:<127}\n", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT")
            .into_bytes()
    }),
    ("sockstat", |k, _| counts(k)),
    ("tcp", |k, _| inet(k, Family::Inet, SocketType::STREAM)),
    ("tcp6", |k, _| inet(k, Family::Inet6, SocketType::STREAM)),
    ("udp", |k, _| inet(k, Family::Inet, SocketType::DGRAM)),
    ("udp6", |k, _| inet(k, Family::Inet6, SocketType::DGRAM)),
    ("unix", |k, _| local(k)),
];

/// The table of local routes.
const TRIE: &[u8] = b"Main:\n  +-- 0.0.0.0/0 1 0 0\nLocal:\n  +-- 127.0.0.0/8 2 0 2\n     +-- 127.0.0.0/31 1 0 0\n        \
|-- 127.0.0.0\n           /8 host LOCAL\n        |-- 127.0.0.1\n           /32 host LOCAL\n     |-- 127.255.255.255\n        \
/32 link BROADCAST\n";

/// Adds the simulated files.
pub(super) fn entries(entries: &mut BTreeMap<Vec<u8>, Entry>) {
    let mut put = |path: String, entry: Entry| entries.insert(path.into_bytes(), entry);
    put(HOSTS.into(), Entry::Text(hosts()));
    put("/proc/net".into(), Entry::Link(|_, _| b"self/net".to_vec()));
    for (name, make) in FILES {
        put(format!("/proc/@/net/{name}"), Entry::Made(*make));
    }
    for (name, value) in [
        ("core/somaxconn", "4096"),
        ("core/rmem_default", "212992"),
        ("core/rmem_max", "212992"),
        ("core/wmem_default", "212992"),
        ("core/wmem_max", "212992"),
        ("ipv4/ip_local_port_range", "32768\t60999"),
        ("ipv4/ip_forward", "0"),
        ("ipv4/tcp_rmem", "4096\t131072\t6291456"),
        ("ipv4/tcp_wmem", "4096\t16384\t4194304"),
        ("ipv6/conf/all/disable_ipv6", "0"),
        ("unix/max_dgram_qlen", "512"),
    ] {
        put(format!("/proc/sys/net/{name}"), Entry::Text(format!("{value}\n").into_bytes()));
    }
    const FOLDER: &str = "/sys/devices/virtual/net/lo";
    put("/sys/class/net/lo".into(), Entry::Link(|_, _| b"../../devices/virtual/net/lo".to_vec()));
    put(format!("{FOLDER}/subsystem"), Entry::Link(|_, _| b"../../../../class/net".to_vec()));
    for (name, value) in [
        ("addr_len", "6".to_owned()),
        ("address", "00:00:00:00:00:00".to_owned()),
        ("broadcast", "00:00:00:00:00:00".to_owned()),
        ("carrier", "1".to_owned()),
        ("dev_id", "0x0".to_owned()),
        ("dormant", "0".to_owned()),
        ("flags", format!("{:#x}", interface::FLAGS & 0xffff & !0x40)),
        ("ifindex", interface::INDEX.to_string()),
        ("iflink", interface::INDEX.to_string()),
        ("link_mode", "0".to_owned()),
        ("mtu", interface::MTU.to_string()),
        ("operstate", "unknown".to_owned()),
        ("tx_queue_len", interface::QUEUE.to_string()),
        ("type", interface::KIND.to_string()),
        ("uevent", format!("INTERFACE={}\nIFINDEX={}", interface::NAME, interface::INDEX)),
    ] {
        put(format!("{FOLDER}/{name}"), Entry::Text(format!("{value}\n").into_bytes()));
    }
    for name in
        ["rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "tx_bytes", "tx_packets", "tx_errors", "tx_dropped"]
    {
        put(format!("{FOLDER}/statistics/{name}"), Entry::Text(b"0\n".to_vec()));
    }
}

/// Returns `/etc/hosts` of a machine with this name and no network but its own.
pub(crate) fn hosts() -> Vec<u8> {
    let [_, name, ..] = uname::FIELDS;
    format!("127.0.0.1\tlocalhost\n127.0.1.1\t{name}\n::1\tlocalhost ip6-localhost ip6-loopback\n").into_bytes()
}

/// Returns `/proc/net/dev` (proc(5)). The simulator counts no packets.
fn devices() -> Vec<u8> {
    let mut text = String::from(
        "Inter-|   Receive                                                |  Transmit\n \
         face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n",
    );
    let _ = write!(text, "{:>6}:", interface::NAME);
    for width in [8, 8, 5, 5, 5, 6, 11, 10, 9, 8, 5, 5, 5, 6, 8, 11] {
        let _ = write!(text, "{:>width$}", 0);
    }
    text.push('\n');
    text.into_bytes()
}

/// Calls `each` for every socket that is open.
fn sockets(k: &Kernel<'_>, mut each: impl FnMut(&Socket)) {
    k.system.network.open().filter_map(|channel| channel.socket.as_ref().map(&mut each)).for_each(drop);
}

/// Returns the number of sockets of each protocol.
fn counts(k: &Kernel<'_>) -> Vec<u8> {
    let mut numbers = [0; 5];
    sockets(k, |socket| {
        numbers[0] += 1;
        match (socket.family, socket.is_datagram()) {
            (Family::Inet, false) => numbers[1] += 1,
            (Family::Inet, true) => numbers[2] += 1,
            (Family::Inet6, false) => numbers[3] += 1,
            (Family::Inet6, true) => numbers[4] += 1,
            (Family::Unix | Family::Netlink, _) => {}
        }
    });
    let [all, tcp, udp, ..] = numbers;
    format!("sockets: used {all}\nTCP: inuse {tcp} orphan 0 tw 0 alloc {tcp} mem 0\nUDP: inuse {udp} mem 0\n")
        .into_bytes()
}

/// Formats an address as `/proc/net/tcp` does: words in the machine's byte order.
fn hexadecimal(place: SocketAddr, family: Family) -> String {
    let ip = match (place.ip(), family) {
        (IpAddr::V4(ip), Family::Inet6) => IpAddr::V6(ip.to_ipv6_mapped()),
        (ip, _) => ip,
    };
    let bytes = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).map(|b| format!("{:08X}", u32::from_le_bytes([b[0], b[1], b[2], b[3]])));
    format!("{}:{:04X}", words.collect::<String>(), place.port())
}

/// Returns the sockets of an internet protocol (proc_pid_net(5)).
fn inet(k: &Kernel<'_>, family: Family, kind: SocketType) -> Vec<u8> {
    let title = match family {
        Family::Inet6 => {
            "  sl  local_address                         remote_address                        st tx_queue \
                          rx_queue tr tm->when retrnsmt   uid  timeout inode"
        }
        _ => "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
    };
    let mut lines = vec![title.to_owned()];
    sockets(k, |socket| {
        let state = socket.state.borrow();
        let bound = state.local.as_ref().and_then(Address::inet);
        let Some(local) = bound.filter(|_| (socket.family, socket.kind) == (family, kind)) else { return };
        let none = family.unspecified().inet().unwrap_or(local);
        let peer = state.peer.as_ref().and_then(Address::inet).unwrap_or(none);
        let number = if socket.is_datagram() && state.peer.is_some() { 1 } else { tcp_state(socket) };
        lines.push(format!(
            "{:4}: {} {} {number:02X} 00000000:00000000 00:00000000 00000000 {:5}        0 {} 1 0000000000000000 100 0 0 10 0",
            lines.len() - 1,
            hexadecimal(local, family),
            hexadecimal(peer, family),
            state.owner.uid,
            socket.id,
        ));
    });
    let line = |line: &String| format!("{line:<149}\n");
    lines.iter().map(line).collect::<String>().into_bytes()
}

/// Returns the local sockets.
fn local(k: &Kernel<'_>) -> Vec<u8> {
    let mut text = b"Num       RefCount Protocol Flags    Type St Inode Path\n".to_vec();
    sockets(k, |socket| {
        if socket.family != Family::Unix {
            return;
        }
        let state = socket.state.borrow();
        // `__SO_ACCEPTCON`, and `SS_UNCONNECTED` or `SS_CONNECTED`.
        let flags = if matches!(state.role, Role::Listening(_)) { 0x1_0000 } else { 0 };
        let connection = if socket.is_connected() { 3 } else { 1 };
        let name = match &state.local {
            Some(Address::Path(path)) => [&b" "[..], path].concat(),
            Some(Address::Abstract(name)) => {
                let name = name.iter().map(|&b| if b == 0 { b'@' } else { b });
                b" @".iter().copied().chain(name).collect()
            }
            _ => Vec::new(),
        };
        let kind = socket.kind.as_raw();
        text.extend(
            format!("{:016x}: 00000002 00000000 {flags:08x} {kind:04x} {connection:02x} {:5}", 0, socket.id).bytes(),
        );
        text.extend(name);
        text.push(b'\n');
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_words_of_the_machine() {
        let place = SocketAddr::from(([127, 0, 0, 1], 22));
        assert_eq!(hexadecimal(place, Family::Inet), "0100007F:0016");
        assert_eq!(hexadecimal(place, Family::Inet6), "0000000000000000FFFF00000100007F:0016");
    }

    #[test]
    fn the_machine_s_name_is_one_of_its_own_addresses() {
        let text = String::from_utf8(hosts()).expect("text");
        assert!(text.contains("127.0.1.1\tfxscope\n") && text.contains("127.0.0.1\tlocalhost\n"), "{text}");
    }
}
