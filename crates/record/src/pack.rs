//! Tables of counts as bytes: each number plus one, or 0 where nothing was counted, in LEB128 (seven bits per byte,
//! lowest first, the top bit set in all bytes but the last).

/// Encodes `values`.
pub(crate) fn pack(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * 5);
    for value in values {
        // A missing count has all bits set and wraps to 0.
        let mut rest = value.wrapping_add(1);
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes
}

/// Decodes `bytes`; `None` if they are not output of [`pack`].
pub(crate) fn unpack(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut values = Vec::with_capacity(bytes.len() / 2);
    let (mut value, mut shift) = (0u64, 0);
    for &byte in bytes {
        let bits = u64::from(byte & 0x7f);
        if shift > 63 || (bits << shift) >> shift != bits {
            return None;
        }
        value |= bits << shift;
        shift += 7;
        if byte < 0x80 {
            values.push(value.wrapping_sub(1));
            (value, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_numbers_take_one_byte_and_absent_ones_are_zero() {
        assert_eq!(pack(&[u64::MAX, 0, 126, 127]), [0, 1, 127, 0x80, 1]);
    }

    #[test]
    fn truncated_and_too_large_numbers_are_refused() {
        assert_eq!(unpack(&[0x80]), None);
        assert_eq!(unpack(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]), None);
        assert_eq!(unpack(&[0x80; 11]), None);
    }

    proptest! {
        #[test]
        fn numbers_come_back(values in proptest::collection::vec(any::<u64>(), 0..100)) {
            prop_assert_eq!(unpack(&pack(&values)), Some(values));
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = unpack(&bytes);
        }
    }
}
