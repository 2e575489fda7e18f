//! Registering descriptors with the async runtime.
//!
//! Registration is unsafe because a type could later return a different descriptor than the one it
//! registered. Ours cannot: each owns one descriptor for its whole lifetime.

use std::io;
use std::os::fd::AsRawFd;

pub use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use sealed::OneDescriptor;

/// Registers the descriptor with the current runtime. Panics outside a runtime.
pub fn watch<T: AsRawFd + OneDescriptor>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: `inner` owns its descriptor and keeps it open and unchanged until it is dropped; the
    // types below guarantee this by construction.
    let registered = unsafe { AsyncFd::register_with_interest(inner, interest) };
    registered.map_err(|error| error.into_parts().1)
}

mod sealed {
    /// A value that owns one descriptor and never changes it.
    pub trait OneDescriptor {}
    impl OneDescriptor for std::os::fd::OwnedFd {}
    impl OneDescriptor for crate::ExitWatch {}
    impl OneDescriptor for crate::procfs::Member {}
    impl OneDescriptor for crate::registry::Entered {}
    impl OneDescriptor for crate::spawn::Answers {}
}
