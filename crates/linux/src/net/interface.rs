//! The only interface of the run's own network, `lo`, and what programs ask of interfaces with `ioctl` (netdevice(7)).

use std::net::Ipv4Addr;

use rustix::io::Errno;

use super::address::{Address, Family};

/// Its name.
pub(crate) const NAME: &str = "lo";
/// Its number.
pub(crate) const INDEX: u32 = 1;
/// Its largest packet in bytes.
pub(crate) const MTU: u32 = 65_536;
/// Length of its queue.
pub(crate) const QUEUE: u32 = 1000;
/// Its type, `ARPHRD_LOOPBACK`.
pub(crate) const KIND: u16 = 772;
/// Its flags: `IFF_UP`, `IFF_LOOPBACK`, `IFF_RUNNING`, and `IFF_LOWER_UP`.
pub(crate) const FLAGS: u32 = 0x1_0049;
/// The mask of its IPv4 address.
const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 0, 0, 0);

/// Bytes of `struct ifreq`, and of the name in it.
pub(crate) const REQUEST: usize = 40;
const REQUEST_NAME: usize = 16;

/// Returns the bytes of `struct sockaddr` for an IPv4 address.
fn host(ip: Ipv4Addr) -> Vec<u8> {
    Address::Inet((ip, 0).into()).bytes(Family::Inet)
}

/// Returns the entries of `SIOCGIFCONF`.
pub(crate) fn configuration() -> Vec<u8> {
    let mut entry = named(NAME);
    entry[REQUEST_NAME..][..16].copy_from_slice(&host(Ipv4Addr::LOCALHOST));
    entry
}

fn named(name: &str) -> Vec<u8> {
    let mut request = vec![0; REQUEST];
    request[..name.len()].copy_from_slice(name.as_bytes());
    request
}

/// Answers an `ioctl` about an interface: `request` is the program's `struct ifreq`, and the answer replaces it. `None`: it is no
/// such call.
///
/// # Errors
/// `ENODEV` when there is no such interface; `EPERM` for changes; `EOPNOTSUPP` for what the interface does not have.
pub(crate) fn answer(call: u32, request: &[u8]) -> Option<Result<Vec<u8>, Errno>> {
    const NAME_OF_INDEX: u32 = 0x8910;
    let value: Vec<u8> = match call {
        NAME_OF_INDEX => {
            let index = request.get(REQUEST_NAME..REQUEST_NAME + 4)?;
            let known = index == INDEX.to_le_bytes();
            let answer = || [&named(NAME)[..REQUEST_NAME], &request[REQUEST_NAME..]].concat();
            return Some(if known { Ok(answer()) } else { Err(Errno::NODEV) });
        }
        // Flags: the lower half.
        0x8913 => (FLAGS as u16).to_le_bytes().to_vec(),
        // Address, address of the other end of the interface, broadcast address, mask.
        0x8915 | 0x8917 => host(Ipv4Addr::LOCALHOST),
        0x8919 => host(Ipv4Addr::UNSPECIFIED),
        0x891b => host(NETMASK),
        // Metric, largest packet, hardware address, number, length of the queue, memory map.
        0x891d => vec![0; 4],
        0x8921 => MTU.to_le_bytes().to_vec(),
        0x8927 => [&KIND.to_le_bytes()[..], &[0; 14]].concat(),
        0x8933 => INDEX.to_le_bytes().to_vec(),
        0x8942 => QUEUE.to_le_bytes().to_vec(),
        0x8970 => vec![0; 24],
        // `SIOCETHTOOL` and the ioctls of wireless interfaces.
        0x8946 | 0x8b01..=0x8bff => return Some(Err(Errno::OPNOTSUPP)),
        0x8914 | 0x8916 | 0x8918 | 0x891a | 0x891c | 0x891e | 0x8922 | 0x8923 | 0x8924 | 0x8943 => {
            return Some(Err(Errno::PERM));
        }
        _ => return None,
    };
    if request.get(..REQUEST_NAME)?.split(|&b| b == 0).next() != Some(NAME.as_bytes()) {
        return Some(Err(Errno::NODEV));
    }
    let mut answer = request.to_vec();
    answer[REQUEST_NAME..][..value.len()].copy_from_slice(&value);
    Some(Ok(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_interface_answers() {
        let ask = |call, name| answer(call, &named(name));
        assert_eq!(ask(0x8921, "lo").map(|a| a.map(|a| a[16..20].to_vec())), Some(Ok(MTU.to_le_bytes().to_vec())));
        assert_eq!(ask(0x8921, "eth0"), Some(Err(Errno::NODEV)));
        assert_eq!(ask(0x8910, ""), Some(Err(Errno::NODEV)));
        assert_eq!(ask(0x8922, "lo"), Some(Err(Errno::PERM)));
        assert_eq!(ask(0x5401, "lo"), None);
    }
}
