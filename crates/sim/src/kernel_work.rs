//! What the kernel does to the active core: system calls, switches between threads, changes of pages and of code.

use fxscope_aarch64::Engine;

use crate::jobs::Unfit;
use crate::timing::Driver;

impl<E: Engine> Driver<'_, E> {
    /// Follows a block that may have written a control register of the processor, or has called the kernel.
    #[cold]
    pub(crate) fn controlled(&mut self, enters_kernel: bool) {
        if enters_kernel {
            if self.guest.wants_counts() {
                self.is_unfit(Unfit::Events);
                self.pass_counts();
            }
            self.in_kernel();
        } else {
            let (core, chip) = self.timing.machine.running();
            core.read_controls(self.guest, chip);
        }
    }

    /// Follows the kernel's switch to another thread.
    #[cold]
    pub(crate) fn switched(&mut self) {
        self.note_others();
        let (core, chip) = self.timing.machine.running();
        core.switched(self.guest, self.options.follow, chip);
        self.count_current_thread();
        self.in_kernel();
    }

    /// Charges a system call that the program has, or may have, made.
    #[cold]
    fn in_kernel(&mut self) {
        let (core, chip) = self.timing.machine.running();
        core.called_kernel = true;
        core.pause(self.options.spec.assumptions.system_call);
        core.read_controls(self.guest, chip);
        core.markers.learn(self.guest);
        self.set_clock();
    }

    /// Called when the first block after a system call has run: the page changes of the call come before it.
    #[cold]
    pub(crate) fn back_from_kernel(&mut self) {
        self.timing.machine.core_mut().called_kernel = false;
        self.note_others();
        self.set_clock();
        self.review_spinning();
    }

    /// Sets the guest's clock to the core's, and updates the model after changes to the address space.
    #[inline(always)]
    pub(crate) fn set_clock(&mut self) {
        let core = self.timing.machine.core_mut();
        if core.untimed_instructions > 0 {
            core.pass_untimed();
        }
        self.guest.set_now_ns(core.now_ns().max(self.guest.now_ns()));
        if self.timing.tiering.is_some() {
            self.follow_heat();
        }
        let (core, chip) = self.timing.machine.running();
        core.learn_pages(self.guest, &mut self.timing.pages, &self.options.spec, chip);
        if let Some(work) = self.guest.take_memory_work() {
            core.pages_worked(work, &mut self.timing.address_spaces, &self.options.spec);
        }
    }

    /// Drops bound blocks: the code has changed, and perhaps the program.
    #[cold]
    pub(crate) fn forget_blocks(&mut self) {
        self.stop_all_spinning();
        self.catch_up_all();
        for core in self.timing.machine.iter_mut() {
            core.forget_blocks(self.guest);
        }
    }
}
