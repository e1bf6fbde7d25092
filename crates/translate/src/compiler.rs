//! Cranelift, set up for the host.

use cranelift_codegen::Context as Compilation;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable as _};
use cranelift_frontend::FunctionBuilderContext;

use crate::emit::{self, Surroundings};
use crate::unit::UnitBlock;

/// Turns units into host code. It keeps the compiler's allocations.
pub(crate) struct Compiler {
    isa: OwnedTargetIsa,
    compilation: Compilation,
    builder: FunctionBuilderContext,
}

impl Compiler {
    /// Returns a compiler for this host; `None`: the host is not one for which units can be translated.
    pub(crate) fn for_host() -> Option<Compiler> {
        let mut flags = settings::builder();
        // Optimising units takes longer than it saves in all but the longest runs.
        flags.set("opt_level", "none").ok()?;
        // Continuing in another unit needs them.
        flags.set("preserve_frame_pointers", "true").ok()?;
        flags.set("unwind_info", "false").ok()?;
        flags.set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }).ok()?;
        let isa = cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()?;
        Some(Compiler { isa, compilation: Compilation::new(), builder: FunctionBuilderContext::new() })
    }

    /// Translates a unit. Returns its code; `None`: it cannot be translated.
    pub(crate) fn unit(&mut self, blocks: &[UnitBlock], surroundings: Surroundings<'_>) -> Option<Vec<u8>> {
        self.compilation.clear();
        emit::unit(&mut self.compilation.func, &mut self.builder, &*self.isa, blocks, surroundings);
        self.compile()
    }

    /// Translates a block that writes the dynamic stream, for plain floating point without subnormal numbers so far. Returns its code;
    /// `None`: it cannot be translated.
    pub(crate) fn traced(&mut self, block: &UnitBlock, surroundings: Surroundings<'_>) -> Option<Vec<u8>> {
        self.compilation.clear();
        emit::traced(&mut self.compilation.func, &mut self.builder, &*self.isa, block, surroundings);
        self.compile()
    }

    /// Returns the code of the function that calls units.
    pub(crate) fn gate(&mut self) -> Option<Vec<u8>> {
        self.compilation.clear();
        emit::gate(&mut self.compilation.func, &mut self.builder, &*self.isa);
        self.compile()
    }

    /// Returns the code of what has been emitted.
    fn compile(&mut self) -> Option<Vec<u8>> {
        let compiled = match self.compilation.compile(&*self.isa, &mut ControlPlane::default()) {
            Ok(compiled) => compiled,
            Err(error) => {
                debug_assert!(false, "generated code must compile: {error:?}");
                return None;
            }
        };
        // Functions outside the unit are called by their addresses; the compiler's own library is not there.
        compiled.buffer.relocs().is_empty().then(|| compiled.code_buffer().to_vec())
    }
}
