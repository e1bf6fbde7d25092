//! Prefetch hints to the host, for speed only.

/// Prefetches `slice[index]` into the host's caches, if the index is valid.
#[inline(always)]
pub fn fetch_early<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = slice.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect on memory, and the pointer comes from a reference.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch(std::ptr::from_ref(item).cast::<i8>(), _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Loads of at least this many bytes are likely to be followed by others at the next addresses.
const STREAM_BYTES: usize = 64;
/// How far ahead of such a load to prefetch: between two loads of a guest, the host's own prefetcher may lose the stream.
const STREAM_AHEAD: usize = 4 * STREAM_BYTES;

/// Prefetches what a guest that loads a `T` at `bytes[at..]` is likely to load next.
#[inline(always)]
pub fn expect_stream<T>(bytes: &[u8], at: usize) {
    if size_of::<T>() >= STREAM_BYTES {
        fetch_early(bytes, at + STREAM_AHEAD);
    }
}
