//! Stores of words, half words and bytes whose tag access may share a cycle with a write (manual table 7-5).

use fxscope_isa::Access;
use fxscope_pipeline::lsu::rules::whole_groups;

use crate::common::*;

#[test]
fn a_store_is_eligible_by_its_elements_if_each_eight_bytes_are_all_active_or_all_inactive() {
    let mut random = Random::new(1);
    for (class, bytes) in [("ST1B", 1), ("ST1H", 2), ("ST1W", 4), ("ST1D", 8)] {
        let class: &'static str = Box::leak(format!("sve:{class} (scalar plus immediate)").into_boxed_str());
        for round in 0..200 {
            // Mostly whole groups, some with a single element in another state.
            let groups = random.below(256);
            let mut active = std::array::from_fn::<bool, 64, _>(|byte| groups >> (byte / 8) & 1 == 1);
            if round % 2 == 1 {
                let element = random.below(64 / bytes) * bytes;
                (element..element + bytes).for_each(|byte| active[byte as usize] ^= true);
            }
            let mask = (0..64).step_by(bytes as usize).filter(|&byte| active[byte]).map(|byte| 1_u64 << byte).sum();
            let store = op(class).based(&[x(2), p(0)]).reads(&[z(1)]).masked(Access::Store, bytes as u8, DATA, mask);
            let block = Block::new(CODE, &[store], &machine());
            let (access, words) = block.accesses().remove(0).expect("a store");
            let whole = active.chunks(8).all(|group| group.iter().all(|&byte| byte == group[0]));
            assert_eq!(whole_groups(&access, &words), whole || bytes == 8, "{bytes} bytes, {mask:#x}");
        }
    }
}

#[test]
fn stores_of_plain_registers_have_no_elements_to_look_at() {
    let block = Block::new(CODE, &[str_bytes(1, 2, 4, DATA)], &machine());
    let (access, words) = block.accesses().remove(0).expect("a store");
    assert!(whole_groups(&access, &words));
}
