"""nbgrad"""
