//! The native dialect of DashScope.
