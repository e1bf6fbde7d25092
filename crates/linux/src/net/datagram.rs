//! Datagrams: a message with the sender's address in front of its data, in the wire of the socket that will receive it.

use super::address::{Address, Family};

/// Bytes in front of the data of a message: the length of an address, and room for the longest.
pub(crate) const HEADER: usize = 112;

/// Maximum bytes of data in a packet of UDP over IPv4 (65,535 less the headers).
pub(crate) const UDP_MAX: u64 = 65_507;

/// Returns what precedes the data of a message from `sender` to a socket of the family `receiver`.
pub(crate) fn header(sender: &Address, receiver: Family) -> [u8; HEADER] {
    let address = match sender {
        Address::Unnamed => Vec::new(),
        sender => sender.bytes(receiver),
    };
    let mut header = [0; HEADER];
    let len = address.len().min(HEADER - 1);
    header[0] = len as u8;
    header[1..=len].copy_from_slice(&address[..len]);
    header
}

/// Returns the sender's address in the header of a message, as bytes for the program; empty if it has none.
pub(crate) fn sender(header: &[u8]) -> Vec<u8> {
    let len = header.first().map_or(0, |&len| usize::from(len));
    header.get(1..=len).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_holds_every_address() {
        for address in [Address::Abstract(vec![7; 107]), Address::Path(vec![b'x'; 108]), Address::Abstract(Vec::new())]
        {
            assert_eq!(sender(&header(&address, Family::Unix)), address.bytes(Family::Unix));
        }
        assert_eq!(sender(&header(&Address::Unnamed, Family::Unix)), b"");
        assert_eq!(sender(&[]), b"");
    }
}
