"""What the engines cost, beside a step of their own: real workers on a real Postgres, and a real Temporal server."""
