//! Reading and writing the memory of a program on behalf of a system call: every failure is `EFAULT`.

use bytemuck::Pod;
use fxscope_guestmem::Memory;
use rustix::io::Errno;

/// Maximum length of a path in bytes, including its terminating zero.
const PATH_MAX: usize = 4096;

/// Maximum length of a program's argument in bytes (Linux's `MAX_ARG_STRLEN` with 64 KiB pages).
const ARGUMENT_MAX: usize = 32 << 16;

pub(crate) fn read<T: Pod>(mem: &mut Memory, addr: u64) -> Result<T, Errno> {
    mem.load(addr).map_err(|_| Errno::FAULT)
}

pub(crate) fn write<T: Pod>(mem: &mut Memory, addr: u64, value: T) -> Result<(), Errno> {
    mem.store(addr, value).map_err(|_| Errno::FAULT)
}

/// Writes `value` unless the pointer is null.
pub(crate) fn write_if<T: Pod>(mem: &mut Memory, addr: u64, value: T) -> Result<(), Errno> {
    if addr == 0 { Ok(()) } else { write(mem, addr, value) }
}

pub(crate) fn read_bytes(mem: &mut Memory, addr: u64, len: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; len];
    mem.read(addr, &mut bytes).map_err(|_| Errno::FAULT)?;
    Ok(bytes)
}

pub(crate) fn write_bytes(mem: &mut Memory, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
    mem.write(addr, bytes).map_err(|_| Errno::FAULT)
}

/// Reads a path or another string terminated by a zero byte.
pub(crate) fn string(mem: &mut Memory, addr: u64) -> Result<Vec<u8>, Errno> {
    bounded_string(mem, addr, PATH_MAX).and_then(|text| text.ok_or(Errno::NAMETOOLONG))
}

/// Reads an argument or environment variable of a program: a string of any reasonable length.
pub(crate) fn long_string(mem: &mut Memory, addr: u64) -> Result<Vec<u8>, Errno> {
    bounded_string(mem, addr, ARGUMENT_MAX).and_then(|text| text.ok_or(Errno::TOOBIG))
}

/// Reads a string of less than `most` bytes; `None`: it is longer.
fn bounded_string(mem: &mut Memory, addr: u64, most: usize) -> Result<Option<Vec<u8>>, Errno> {
    let mut text = Vec::new();
    loop {
        match read::<u8>(mem, addr.wrapping_add(text.len() as u64))? {
            0 => return Ok(Some(text)),
            byte => text.push(byte),
        }
        if text.len() == most {
            return Ok(None);
        }
    }
}
