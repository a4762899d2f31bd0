//! The bridge between scripted A2A agents and a real MCP client.
