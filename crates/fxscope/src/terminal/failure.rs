//! Commands that fail: one message each, and an exit status.

use std::any::Any;
use std::io::ErrorKind;
use std::process::ExitCode;

use fxscope::lab;
use fxscope::linux::StartError;
use fxscope::record::Finish;

use super::status::{CANNOT_RUN, FAILED, NOT_FOUND};
use super::{interrupt, say};

/// Result of a command: the exit status, or one message.
pub(crate) type Outcome = Result<ExitCode, Failure>;

/// A message that says what is wrong and what to do, and the exit status for it.
pub(crate) struct Failure {
    pub(crate) status: u8,
    pub(crate) message: String,
}

impl<E: std::fmt::Display + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { status: status_of(&error), message: error.to_string() }
    }
}

/// Returns the result of a laboratory. If a signal ended it, the failure says so, and `what` that means, such as `the calibration; nothing
/// is written`.
pub(crate) fn unless_stopped<T>(result: Result<T, lab::Error>, what: &str) -> Result<T, Failure> {
    match result {
        Err(lab::Error::Stopped) => {
            Err(Failure { status: interrupt::status(), message: format!("{} ended {what}", interrupt::name()) })
        }
        result => Ok(result?),
    }
}

/// Returns the exit status for an error.
fn status_of(error: &dyn Any) -> u8 {
    if let Some(error) = error.downcast_ref::<fxscope::Error>() {
        return start_status(error);
    }
    match error.downcast_ref::<lab::Error>() {
        Some(lab::Error::Scenario(error)) => start_status(error),
        Some(lab::Error::Stopped | lab::Error::Ended { finish: Finish::Stopped, .. }) => interrupt::status(),
        // Statuses have eight bits.
        Some(lab::Error::Ended { finish, .. }) => finish.exit_code().map_or(FAILED, |code| code as u8),
        Some(lab::Error::Request(_) | lab::Error::Host(_)) | None => FAILED,
    }
}

/// Returns the exit status for a program that cannot start, as in shells.
fn start_status(error: &fxscope::Error) -> u8 {
    match error {
        fxscope::Error::Start(StartError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => NOT_FOUND,
        fxscope::Error::Start(StartError::Read { .. } | StartError::Elf { .. } | StartError::Interpreter { .. }) => {
            CANNOT_RUN
        }
        _ => FAILED,
    }
}

/// Where fxscope itself is wrong, whatever thread finds it, says so, and ends with the status of its failures.
pub(crate) fn report_own_errors() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default(panic);
        say("this is an error of fxscope, not of your program: please report it with the command and the lines above");
        std::process::exit(FAILED.into())
    }));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{FAILED, report_own_errors};

    /// Set in the process that goes wrong.
    const WRONG: &str = "FXSCOPE_TEST_OF_OWN_ERRORS";

    #[test]
    fn an_error_of_fxscope_itself_ends_it_with_its_status_and_a_message_from_any_thread() {
        if std::env::var_os(WRONG).is_some() {
            report_own_errors();
            let _ = std::thread::spawn(|| panic!("wrong itself")).join();
            std::process::exit(0);
        }
        let name = std::thread::current().name().expect("libtest names its threads").to_owned();
        let this = std::env::current_exe().expect("the test knows its program");
        let wrong =
            Command::new(this).args(["--exact", &name, "--nocapture"]).env(WRONG, "1").output().expect("it starts");
        let said = String::from_utf8_lossy(&wrong.stderr);
        assert_eq!(wrong.status.code(), Some(FAILED.into()), "{said}");
        assert!(said.contains("wrong itself") && said.contains("\nfxscope: this is an error of fxscope"), "{said}");
    }
}
