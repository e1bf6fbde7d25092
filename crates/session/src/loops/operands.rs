//! Which instruction makes the operand that another one waits for, as far as the code says it.

use fxscope_isa::{Reg, StaticInst};

use super::Executed;
use super::graph::NaturalLoop;

/// Instructions before one among which the producers of its operands are sought.
const REACH: usize = 1024;

/// Returns for each instruction the one that makes its operand: for each register that it reads, the nearest instruction before it that
/// writes the register, within its innermost loop, whose end is before its beginning; and of these the one that takes longest from
/// issue to commit. Registers that the loop does not change have none.
pub(super) fn producers(code: &[Executed], infos: &[Option<StaticInst>], loops: &[NaturalLoop]) -> Vec<Option<usize>> {
    let mut innermost: Vec<Option<&NaturalLoop>> = vec![None; code.len()];
    // Inner loops come later.
    for of in loops {
        of.members.iter().for_each(|&member| innermost[member] = Some(of));
    }
    (0..code.len()).map(|index| producer(index, code, infos, innermost[index])).collect()
}

fn producer(
    index: usize,
    code: &[Executed],
    infos: &[Option<StaticInst>],
    around: Option<&NaturalLoop>,
) -> Option<usize> {
    let info = infos[index].as_ref()?;
    let before = before(index, around);
    let of_register = |register: Reg| before.iter().copied().find(|&other| writes(infos[other].as_ref(), register));
    let cycles = |index: usize| code[index].in_flight as f64 / code[index].executions.max(1) as f64;
    info.srcs
        .iter()
        .chain(info.addr_srcs.iter())
        .filter_map(of_register)
        .reduce(|a, b| if cycles(b) > cycles(a) { b } else { a })
}

/// Returns the instructions that are executed before one, the nearest first.
fn before(index: usize, around: Option<&NaturalLoop>) -> Vec<usize> {
    let Some(around) = around else { return (0..index).rev().take(REACH).collect() };
    let members = &around.members;
    let place = members.partition_point(|&member| member < index);
    let (earlier, later) = members.split_at(place);
    earlier.iter().rev().chain(later.iter().rev()).copied().take(REACH).collect()
}

fn writes(info: Option<&StaticInst>, register: Reg) -> bool {
    info.is_some_and(|info| info.dsts.iter().any(|written| written == register) || info.writeback == Some(register))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(srcs: &[u8], dsts: &[u8]) -> Option<StaticInst> {
        let mut info = StaticInst::new("test");
        srcs.iter().for_each(|&n| info.srcs.push(Reg::gpr(n)));
        dsts.iter().for_each(|&n| info.dsts.push(Reg::gpr(n)));
        Some(info)
    }

    fn executed(in_flight: u64) -> Executed {
        Executed { place: 0, word: None, executions: 1, in_flight }
    }

    #[test]
    fn the_slowest_of_the_nearest_writers_is_the_producer() {
        let code = [executed(3), executed(9), executed(1), executed(1)];
        let infos = [info(&[], &[1]), info(&[], &[2]), info(&[], &[1]), info(&[1, 2, 5], &[3])];
        assert_eq!(producers(&code, &infos, &[]), [None, None, None, Some(1)]);
    }

    #[test]
    fn in_a_loop_the_end_is_before_the_beginning_and_an_instruction_may_wait_for_itself() {
        let code = [executed(50), executed(1), executed(1)];
        // x1 is made before the loop, x2 accumulates, x3 is made at the end.
        let infos = [info(&[], &[1]), info(&[1, 2], &[2]), info(&[3], &[3])];
        let of = NaturalLoop { head: 1, members: vec![1, 2], parent: None, entries: None };
        assert_eq!(producers(&code, &infos, &[of]), [None, Some(1), Some(2)]);
    }
}
