//! Descriptors under the runtime's watch.
//!
//! Registering one is unsafe because a type could answer with another descriptor than the one it
//! was registered with. Ours cannot: each owns one descriptor for as long as it lives.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

pub use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::ExitWatch;
use crate::procfs::Member;
use crate::spawn::Answers;

/// A value that owns one descriptor and never changes it.
pub trait OneDescriptor: AsRawFd + sealed::Sealed {}

impl OneDescriptor for OwnedFd {}
impl OneDescriptor for ExitWatch {}
impl OneDescriptor for Member {}
impl OneDescriptor for Answers {}

/// Lets the current runtime watch the descriptor. Panics outside a runtime.
pub fn watch<T: OneDescriptor>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: `inner` owns its descriptor and keeps it open and the same until it is dropped, which
    // the trait's implementors above do by construction.
    let registered = unsafe { AsyncFd::register_with_interest(inner, interest) };
    registered.map_err(|error| error.into_parts().1)
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for std::os::fd::OwnedFd {}
    impl Sealed for crate::ExitWatch {}
    impl Sealed for crate::procfs::Member {}
    impl Sealed for crate::spawn::Answers {}
}
