//! The return address stack (RAS, manual 3.2.5).

use fxscope_machine::spec::Frontend;

/// The return addresses of the last calls. Deeper calls overwrite the outermost ones.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct ReturnStack {
    /// Return addresses; 0 where there is none.
    stack: Box<[u64]>,
    top: usize,
}

impl ReturnStack {
    /// An empty stack.
    pub fn new(spec: &Frontend) -> ReturnStack {
        ReturnStack { stack: vec![0; spec.return_stack as usize].into(), top: 0 }
    }

    /// A call returns to `addr`.
    #[inline(always)]
    pub fn push(&mut self, addr: u64) {
        self.stack[self.top] = addr;
        self.top = if self.top + 1 == self.stack.len() { 0 } else { self.top + 1 };
    }

    /// The target of a return, if its call is still known.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<u64> {
        self.top = self.top.checked_sub(1).unwrap_or(self.stack.len() - 1);
        let addr = std::mem::take(&mut self.stack[self.top]);
        (addr != 0).then_some(addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::tests::spec;

    #[test]
    fn calls_are_known_as_deep_as_the_stack() {
        let depth = u64::from(spec().return_stack);
        let mut returns = ReturnStack::new(&spec());
        (1..=depth + 1).for_each(|i| returns.push(4 * i));
        // The outermost call was overwritten.
        assert!((2..=depth + 1).rev().all(|i| returns.pop() == Some(4 * i)));
        assert_eq!(returns.pop(), None);
    }
}
