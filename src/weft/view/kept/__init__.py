"""What is taken over and what is kept, in rows and sentences."""
