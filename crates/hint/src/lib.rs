//! Hints to the host, which change nothing but its speed.

/// Asks the host's caches for `slice[index]`, if there is such an item.
#[inline(always)]
pub fn fetch_early<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = slice.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing but caches, and the pointer comes from a reference.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch(std::ptr::from_ref(item).cast::<i8>(), _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Loads of so many bytes are likely to be followed by others right behind them.
const STREAM_BYTES: usize = 64;
/// How far behind such a load the host fetches early: between two loads of a guest it may forget their stream.
const STREAM_AHEAD: usize = 4 * STREAM_BYTES;

/// A guest loads a `T` at `bytes[at..]`: asks the host's caches for what is likely to be next.
#[inline(always)]
pub fn expect_stream<T>(bytes: &[u8], at: usize) {
    if size_of::<T>() >= STREAM_BYTES {
        fetch_early(bytes, at + STREAM_AHEAD);
    }
}
