"""An API server that answers as kube-apiserver does, for the resources that training needs; objects live in memory."""
