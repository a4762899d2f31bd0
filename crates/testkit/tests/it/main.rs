//! The testkit's own tests: the model server over plain HTTP, and the real CLIs through it.

mod http;
mod model;
mod smoke;
