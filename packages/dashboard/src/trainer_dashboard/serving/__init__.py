"""What every answer has in common: headers, the bundle of the page, answers that several requests share."""
