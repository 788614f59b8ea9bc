"""What runs in a controller process: started, watched and stopped in order."""
