"""The distributions beside trainer-operator; a package only so that their tests can import each other's parts."""
