//! The life of a process, from launch to ending.
