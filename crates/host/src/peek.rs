//! Looking into the queue of a local socket.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Sets where in a local socket's queue the next call with `MSG_PEEK` begins, in bytes; each such call moves it on. `None`: at the
/// beginning, as usual (`SO_PEEK_OFF`, socket(7)).
///
/// # Errors
/// The host's, such as `EOPNOTSUPP` for other sockets.
pub fn set_peek_offset(socket: BorrowedFd<'_>, offset: Option<u64>) -> io::Result<()> {
    let value = offset.map_or(Ok(-1), libc::c_int::try_from).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the host reads one `int` from where the pointer says, which lives until the call returns. No crate has this option.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEEK_OFF,
            std::ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use rustix::net::{RecvFlags, recv};

    use super::*;

    #[test]
    fn a_peek_begins_at_the_offset_and_takes_nothing_away() {
        let (mut from, mut to) = UnixStream::pair().expect("a pair");
        from.write_all(b"some text").expect("written");
        let peek = |to: &UnixStream| {
            let mut bytes = [0; 4];
            let count = recv(to, &mut bytes, RecvFlags::PEEK).expect("peeked").0;
            String::from_utf8_lossy(&bytes[..count]).into_owned()
        };
        set_peek_offset(to.as_fd(), Some(5)).expect("set");
        assert_eq!(peek(&to), "text");
        set_peek_offset(to.as_fd(), None).expect("set");
        assert_eq!((peek(&to), peek(&to)), ("some".to_owned(), "some".to_owned()));
        drop(from);
        let mut all = String::new();
        to.read_to_string(&mut all).expect("read");
        assert_eq!(all, "some text");
    }

    #[test]
    fn files_that_are_no_local_sockets_are_refused() {
        let file = std::fs::File::open("/dev/null").expect("the null device");
        assert!(set_peek_offset(file.as_fd(), Some(0)).is_err());
    }
}
