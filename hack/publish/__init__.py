"""What puts a release where strangers find it, from the files that `make images` and `make release` have made."""
