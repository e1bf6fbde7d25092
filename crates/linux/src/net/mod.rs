//! The run's own network: one interface, `lo`, and local sockets between its processes. Nothing of it reaches the host's network.
//!
//! Each socket is one end of a pair of local host sockets, so that the host's `poll` and `epoll` report when it is ready, and
//! `dup`, `fork` and the end of a connection work as they do for every host file. Until the socket is connected, the simulator
//! has the other end, its *wire*:
//!
//! - A stream gives its wire to the listening socket it connects to; `accept` makes a socket of it.
//! - A datagram socket keeps its wire: every sender writes there, with the sender's address in front of the data
//!   ([`datagram`]).
//! - A listening socket has one byte in its wire for each connection that waits, so that it is readable.
//!
//! [`network`] knows all sockets and finds those with a given address.

pub(crate) mod address;
pub(crate) mod connection;
pub(crate) mod datagram;
pub(crate) mod interface;
pub(crate) mod netlink;
pub(crate) mod network;
pub(crate) mod options;
pub(crate) mod rights;
pub(crate) mod socket;
