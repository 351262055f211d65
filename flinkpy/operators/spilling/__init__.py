"""What operators of batch jobs over columns keep on disk when their memory is used up."""
