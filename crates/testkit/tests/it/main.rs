//! The testkit's own tests: the model server over plain HTTP, the real CLIs through it, and the browser.

mod browser;
mod http;
mod model;
mod smoke;
